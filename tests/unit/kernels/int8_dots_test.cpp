/// Dots of row groups in int8 arithmetic: every path has the bits of the plain loops.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/support/random_int8_tile.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {
namespace {

/// Rows of one block, of chunks whose last is shorter, and of chunks of several parts.
std::vector<std::uint32_t> block_counts(TensorType type) {
  if (group_format(type).elements == kMinInt8Block) return {1, 3, 8, 19, 64, 67, 150};
  return {1, 2, 8, 9, 19};
}

RandomInt8Tile::DotGroups dots_of(SimdPath path) {
  return row_kernels(path).dot_groups_int8;
}

}  // namespace

TEST_CASE("int8 dots: every path has the bits of the plain loops, for any rows and groups") {
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  for (const TensorType type : kEveryType) {
    if (!has_row_groups(type)) continue;
    for (const std::uint32_t n_blocks : block_counts(type)) {
      const RandomInt8Tile tile(random, type, n_blocks);
      for (std::uint32_t n_groups = 1; n_groups <= kInt8TileGroups; ++n_groups) {
        for (std::uint32_t n_rows = 1; n_rows <= kInt8TileRows; ++n_rows) {
          const std::vector<float> plain = tile.dots(dots_of(SimdPath::Scalar), n_groups, n_rows);
          for (const SimdPath path : kSimdPaths) {
            if (!cpu_has(path)) continue;
            CAPTURE(name(path), name(type), n_blocks, n_groups, n_rows);
            REQUIRE(first_difference(tile.dots(dots_of(path), n_groups, n_rows), plain) == -1);
          }
        }
      }
    }
  }
}

TEST_CASE("int8 dots: every path stores dots with the bits of the plain loops, and nothing else") {
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  constexpr std::size_t kStride = kGroupRows + 3;  // rows are not aligned
  const std::vector<float> bias = random_floats(random, kGroupRows, 10.0F);
  const std::vector<float> before = random_floats(random, kInt8TileRows * kStride, 10.0F);
  const std::vector<float> values = random_floats(random, kInt8TileRows * kGroupRows, 10.0F);
  GroupDots dots;
  std::ranges::copy(values, dots[0]);
  const auto stored = [&](SimdPath path, std::uint32_t n_rows, bool has_bias, bool accumulate) {
    std::vector<float> out = before;
    row_kernels(path).store_dots({.dots = &dots,
                                  .n_rows = n_rows,
                                  .bias = has_bias ? bias.data() : nullptr,
                                  .accumulate = accumulate,
                                  .out = out.data(),
                                  .stride = kStride});
    return out;
  };
  for (const std::uint32_t n_rows : {1u, 5u, kInt8TileRows}) {
    for (const bool has_bias : {false, true}) {
      for (const bool accumulate : {false, true}) {
        std::vector<float> expected = before;
        for (std::uint32_t i = 0; i < n_rows; ++i) {
          for (std::uint32_t o = 0; o < kGroupRows; ++o) {
            float& out = expected[i * kStride + o];
            const float product = has_bias ? dots[i][o] + bias[o] : dots[i][o];
            out = accumulate ? out + product : product;
          }
        }
        for (const SimdPath path : kSimdPaths) {
          if (!cpu_has(path)) continue;
          CAPTURE(name(path), n_rows, has_bias, accumulate);
          REQUIRE(first_difference(stored(path, n_rows, has_bias, accumulate), expected) == -1);
        }
      }
    }
  }
}

TEST_CASE("int8 dots: the largest elements, scales and minima have the bits of the plain loops") {
  for (const TensorType type : kEveryType) {
    if (!has_row_groups(type)) continue;
    SeededRandom random(1);
    RandomInt8Tile tile(random, type, 2);
    const GroupFormat format = group_format(type);
    for (const int byte : {0x00, 0x0F, 0x7F, 0x80, 0xF0, 0xFF}) {
      for (std::size_t at = 0; at < tile.groups.size(); at += format.size_bytes())
        std::fill_n(tile.groups.begin() + static_cast<std::ptrdiff_t>(at + format.sub_scales_at()),
                    format.size_bytes() - format.sub_scales_at(), static_cast<std::byte>(byte));
      // Bit 2s + p of `signs` is the sign of the even (p = 0) or odd pairs of elements of the even
      // (s = 0) or odd strips: the elements whose products some paths add up in 16 bits.
      for (std::uint32_t signs = 0; signs < 16; ++signs) {
        std::vector<float> values(tile.n_in);
        for (std::uint32_t i = 0; i < tile.n_in; ++i)
          values[i] = (signs >> (i / 2 % 2 + i / 16 % 2 * 2) & 1) == 0 ? 1.0F : -1.0F;
        for (std::uint32_t r = 0; r < kInt8TileRows; ++r) tile.round(r, values);
        const std::vector<float> plain = tile.dots(dots_of(SimdPath::Scalar), 2, kInt8TileRows);
        for (const SimdPath path : kSimdPaths) {
          if (!cpu_has(path)) continue;
          CAPTURE(name(path), name(type), byte, signs);
          REQUIRE(first_difference(tile.dots(dots_of(path), 2, kInt8TileRows), plain) == -1);
        }
      }
    }
  }
}

}  // namespace leasehold::testing
