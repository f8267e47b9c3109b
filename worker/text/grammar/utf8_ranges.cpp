#include "worker/text/grammar/utf8_ranges.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

/// Scalar values by the length of their UTF-8. Source: Unicode 15, table 3-6 and D92.
constexpr std::array<CodePoints, 5> kLengths{
    {{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}}};

std::vector<std::uint8_t> utf8_bytes(std::uint32_t code_point) {
  std::string bytes;
  append_utf8(bytes, code_point);
  return {bytes.begin(), bytes.end()};
}

/// Splits the span until each part varies in a full range of trailing bytes.
void split_range(CodePoints span, std::vector<Utf8Sequence>& sequences) {
  for (const std::uint32_t free_bits : {6u, 12u, 18u}) {
    const std::uint32_t free = (1u << free_bits) - 1;
    if ((span.low & ~free) == (span.high & ~free)) break;  // they differ in the free bits only
    if ((span.low & free) != 0) {
      split_range({span.low, span.low | free}, sequences);
      return split_range({(span.low | free) + 1, span.high}, sequences);
    }
    if ((span.high & free) != free) {
      split_range({span.low, (span.high & ~free) - 1}, sequences);
      return split_range({span.high & ~free, span.high}, sequences);
    }
  }
  const std::vector<std::uint8_t> low = utf8_bytes(span.low);
  const std::vector<std::uint8_t> high = utf8_bytes(span.high);
  Utf8Sequence ranges;
  for (std::size_t i = 0; i < low.size(); ++i) ranges.push_back({low[i], high[i]});
  sequences.push_back(std::move(ranges));
}

}  // namespace

std::vector<Utf8Sequence> utf8_ranges(CodePoints range) {
  std::vector<Utf8Sequence> sequences;
  for (const CodePoints& length : kLengths) {
    const CodePoints part{std::max(range.low, length.low), std::min(range.high, length.high)};
    if (part.low > part.high) continue;
    if (length.high <= 0x7F) {
      sequences.push_back(
          {{static_cast<std::uint8_t>(part.low), static_cast<std::uint8_t>(part.high)}});
    } else {
      split_range(part, sequences);
    }
  }
  return sequences;
}

}  // namespace leasehold
