/// Ranges of characters as ranges of their UTF-8 bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace leasehold {

struct ByteRange {
  std::uint8_t low;
  std::uint8_t high;
};

/// One way to spell some of the characters: a byte of each range, in turn; 1 to 4 of them.
using Utf8Sequence = std::vector<ByteRange>;

/// Spellings that together are exactly the UTF-8 of the characters from `low` to `high`. Surrogates
/// (U+D800 to U+DFFF) are no characters and are left out. `high` is at most 0x10FFFF.
std::vector<Utf8Sequence> utf8_ranges(std::uint32_t low, std::uint32_t high);

}  // namespace leasehold
