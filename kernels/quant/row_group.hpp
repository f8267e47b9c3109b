/// Sixteen rows of a quantised matrix, interleaved so that one register holds the same elements of
/// all of them. Matrices that are multiplied in int8 arithmetic have this layout.
///
/// A matrix of n rows has ceil(n / 16) groups; rows that are missing in the last group are zero. A
/// group has as many bytes as sixteen rows of the file; group_format.hpp describes its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/numerics/int8_order.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold {

constexpr std::uint32_t row_groups(std::uint32_t n_rows) {
  return (n_rows + kGroupRows - 1) / kGroupRows;
}

constexpr std::uint64_t row_group_bytes(TensorType type, std::uint64_t n_in) {
  return kGroupRows * row_size_bytes(type, n_in);
}

/// Interleaves `n_rows` (1 … 16) consecutive rows of n_in elements.
void interleave_rows(TensorType type, const std::byte* rows, std::uint32_t n_rows,
                     std::uint32_t n_in, std::byte* group);

/// Writes one row of a group as floats, equal to those that dequantize_row gives for the row in the
/// file.
void dequantize_group_row(TensorType type, const std::byte* group, std::uint32_t row, float* out,
                          std::uint32_t n_in);

/// out[r, o] = row o of the group · x[r], in the order of int8_order.hpp. The rows are rounded in
/// blocks of group_format(type).elements. `out` is [x.size()][16].
void dot_group_int8(TensorType type, const std::byte* group, std::uint32_t n_in,
                    std::span<const RoundedRow> x, float* out);

}  // namespace leasehold
