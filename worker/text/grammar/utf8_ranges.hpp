/// Ranges of characters as ranges of their UTF-8 bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace leasehold {

struct ByteRange {
  std::uint8_t low;
  std::uint8_t high;
};

/// A set of UTF-8 sequences: one byte from each range, 1 to 4 ranges.
using Utf8Sequence = std::vector<ByteRange>;

/// Sequences that together match exactly the UTF-8 of the characters from `low` to `high`, without
/// surrogates (U+D800 to U+DFFF). `high` is at most 0x10FFFF.
std::vector<Utf8Sequence> utf8_ranges(std::uint32_t low, std::uint32_t high);

}  // namespace leasehold
