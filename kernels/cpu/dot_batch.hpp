/// The inner loop of every CPU matmul: one weight row times many batch rows.
#pragma once

#include <algorithm>

#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {

/// A weight row as floats; a row stored as floats is returned in place.
inline const float* row_as_floats(const RowKernels& kernels, const WeightMatrix& matrix,
                                  const std::byte* source, float* buffer) {
  if (matrix.type == TensorType::F32) return reinterpret_cast<const float*>(source);
  kernels.dequantize_row(matrix.type, source, buffer, matrix.n_in);
  return buffer;
}

struct WeightRow {
  const float* values;  // [n_in]
  std::uint32_t n_in;
};

/// Calls `store(i, weights · row_of(i))` for each i of the span.
template <class RowOf, class Store>
void dot_batch(const RowKernels& kernels, WeightRow weights, Span32 batch, RowOf&& row_of,
               Store&& store) {
  for (std::uint32_t first = batch.begin; first < batch.end; first += kDotGroup) {
    const std::uint32_t n_rows = std::min(kDotGroup, batch.end - first);
    const float* x[kDotGroup] = {};
    float dots[kDotGroup];
    for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = row_of(first + i);
    kernels.dot_group(weights.values, x, n_rows, weights.n_in, dots);
    for (std::uint32_t i = 0; i < n_rows; ++i) store(first + i, dots[i]);
  }
}

}  // namespace leasehold
