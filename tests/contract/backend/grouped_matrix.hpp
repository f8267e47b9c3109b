/// A random matrix for int8 arithmetic.
#pragma once

#include <algorithm>

#include "kernels/quant/row_group.hpp"
#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {

/// A matrix of row groups, and the rows that it was made from.
struct GroupedMatrix {
  GroupedMatrix(SeededRandom& random, TensorType type, std::uint32_t n_out, std::uint32_t n_in)
      : rows(random, type, n_out, n_in), memory(row_groups(n_out) * row_group_bytes(type, n_in)) {
    const std::uint64_t row_bytes = row_size_bytes(type, n_in);
    for (std::uint32_t group = 0; group < row_groups(n_out); ++group) {
      const std::uint32_t first = group * kGroupRows;
      interleave_rows(type, rows.memory.bytes() + first * row_bytes,
                      std::min(kGroupRows, n_out - first), n_in,
                      memory.bytes() + group * row_group_bytes(type, n_in));
    }
  }

  WeightMatrix view() const {
    WeightMatrix matrix = rows.view();
    matrix.layout = MatrixLayout::RowGroups;
    matrix.data = memory.at();
    return matrix;
  }

  Matrix rows;
  LeasedMemory memory;
};

}  // namespace leasehold::testing
