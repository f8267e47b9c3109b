/// Converts ranges of characters to ranges of their UTF-8 bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace leasehold {

/// Unicode scalar values, including both ends.
struct CodePoints {
  std::uint32_t low;
  std::uint32_t high;
  auto operator<=>(const CodePoints&) const = default;
};

struct ByteRange {
  std::uint8_t low;
  std::uint8_t high;
};

/// A set of UTF-8 sequences: one byte from each range, 1 to 4 ranges.
using Utf8Sequence = std::vector<ByteRange>;

/// Sequences that together match exactly the UTF-8 of the range, without surrogates (U+D800 to
/// U+DFFF). `high` is at most 0x10FFFF.
std::vector<Utf8Sequence> utf8_ranges(CodePoints range);

}  // namespace leasehold
