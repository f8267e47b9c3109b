#include "worker/text/grammar/utf8_ranges.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "common/utf8.hpp"

namespace leasehold {
namespace {

bool spells(const std::vector<Utf8Sequence>& sequences, const std::string& bytes) {
  return std::ranges::any_of(sequences, [&](const Utf8Sequence& ranges) {
    if (ranges.size() != bytes.size()) return false;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(bytes[i]);
      if (byte < ranges[i].low || byte > ranges[i].high) return false;
    }
    return true;
  });
}

std::uint64_t spelled_count(const std::vector<Utf8Sequence>& sequences) {
  std::uint64_t count = 0;
  for (const Utf8Sequence& ranges : sequences) {
    std::uint64_t here = 1;
    for (const ByteRange& range : ranges) here *= range.high - range.low + 1u;
    count += here;
  }
  return count;
}

std::uint64_t characters_between(std::uint32_t low, std::uint32_t high) {
  std::uint64_t count = 0;
  for (std::uint32_t c = low; c <= high; ++c) count += is_scalar_value(c) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("utf8 ranges: all of Unicode has the nine sequences of the standard") {
  const auto all = utf8_ranges({0, 0x10FFFF});
  REQUIRE(spelled_count(all) == 0x110000 - 0x800);
  REQUIRE(all.size() <= 10);
}

TEST_CASE("utf8 ranges: a range matches each of its characters once and nothing else") {
  SeededRandom random(99);
  const std::uint32_t edges[] = {0,      0x7F,   0x80,   0x7FF,   0x800,    0xD7FF,  0xD800,
                                 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF, 0x1F999, 0x3040};
  for (int round = 0; round < 400; ++round) {
    const auto near = [&] {
      const auto c =
          edges[random.below(std::size(edges))] + static_cast<std::uint32_t>(random.below(99));
      return std::min<std::uint32_t>(c, 0x10FFFF);
    };
    const auto [low, high] = std::minmax({near(), near()});
    const auto sequences = utf8_ranges({low, high});
    CAPTURE(low, high);
    // Equal count, and every character matches: so the sets are equal.
    REQUIRE(spelled_count(sequences) == characters_between(low, high));
    for (int i = 0; i < 40; ++i) {
      const auto c = low + static_cast<std::uint32_t>(random.below(high - low + 1));
      std::string bytes;
      if (!is_scalar_value(c)) continue;
      append_utf8(bytes, c);
      REQUIRE(spells(sequences, bytes));
    }
  }
}

}  // namespace leasehold
