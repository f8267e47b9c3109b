/// Random groups and rounded rows, multiplied by any function for int8 dots.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cpu/row_kernels.hpp"
#include "kernels/rounded_rows.hpp"
#include "tests/support/random_blocks.hpp"

namespace leasehold::testing {

/// kInt8TileGroups groups, and rows rounded for them.
struct RandomInt8Tile {
  static constexpr float kUnwritten = 12345.0F;
  using DotGroups = void (*)(const Int8Tile&);

  RandomInt8Tile(SeededRandom& random, TensorType of, std::uint32_t n_blocks,
                 std::uint32_t n_rows = kInt8TileRows)
      : type(of),
        n_in(n_blocks * group_format(type).elements),
        groups(kInt8TileGroups * row_group_bytes(type, n_in)),
        rounded(n_rows, n_in) {
    std::vector<std::byte> rows(row_group_bytes(type, n_in));
    for (std::uint32_t g = 0; g < kInt8TileGroups; ++g) {
      for (std::size_t at = 0; at < rows.size(); at += block_shape(type).size_bytes)
        fill_block(random, type, rows.data() + at);
      interleave_rows(type, rows.data(), kGroupRows, n_in, groups.data() + g * rows.size());
    }
    for (std::uint32_t r = 0; r < n_rows; ++r) {
      round(r, random_floats(random, n_in, 100.0F));
      x.push_back(rounded.row(r));
    }
  }

  void round(std::uint32_t row, const std::vector<float>& values) {
    round_row(values.data(), n_in, group_format(type).elements, rounded.buffer(row));
  }

  /// [kInt8TileGroups][kInt8TileRows][kGroupRows] of a tile of rows from `first` on. Dots that are
  /// not written are kUnwritten.
  std::vector<float> dots(DotGroups dot_groups, std::uint32_t n_groups, std::uint32_t n_rows,
                          std::uint32_t first = 0) const {
    GroupDots out[kInt8TileGroups];
    std::fill_n(&out[0][0][0], sizeof out / sizeof(float), kUnwritten);
    dot_groups({.type = type,
                .groups = groups.data(),
                .n_groups = n_groups,
                .n_in = n_in,
                .x = x.data() + first,
                .n_rows = n_rows,
                .out = out});
    return {&out[0][0][0], &out[0][0][0] + sizeof out / sizeof(float)};
  }

  TensorType type;
  std::uint32_t n_in;
  std::vector<std::byte> groups;
  RoundedRows rounded;
  std::vector<RoundedRow> x;  // [n_rows]
};

}  // namespace leasehold::testing
