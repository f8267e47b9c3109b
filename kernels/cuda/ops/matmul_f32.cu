/// Matmul as floats: no halves, the same bits as ordered_dot (kernels/numerics/ordered_sum.hpp):
/// each lane adds its elements in ascending order, then the lanes fold in halves.
#include "kernels/cuda/device/block_element.cuh"
#include "kernels/cuda/device/matmul_columns.cuh"

namespace leasehold::device {

/// Rows of floats.
struct FloatRow {
  const float* elements;

  __device__ __forceinline__ FloatRow(const FloatMatmulParams&, const std::byte* row)
      : elements(reinterpret_cast<const float*>(row)) {}
  __device__ __forceinline__ float at(std::uint32_t i) const { return elements[i]; }
};

/// Rows of any type, widened element by element with about ten instructions each. They serve the
/// few matrices that int8 arithmetic leaves to floats, and as the reference for the fast kernels.
struct WidenedRow {
  const std::byte* row;
  TensorType type;
  BlockShape shape;

  __device__ __forceinline__ WidenedRow(const FloatMatmulParams& p, const std::byte* row_)
      : row(row_), type(p.type), shape(p.shape) {}
  __device__ __forceinline__ float at(std::uint32_t i) const {
    const std::byte* block = row + std::size_t{i / shape.elements} * shape.size_bytes;
    return block_element(type, block, i % shape.elements);
  }
};

template <std::uint32_t kColumns, class Row>
__device__ __forceinline__ void float_products(const FloatMatmulParams& p, const ColumnList& list,
                                               const Row& weights, std::uint32_t output) {
  const float* x[kColumns];  // [n_in] each; entries beyond the list repeat the first
  float sums[kColumns];
  for (std::uint32_t c = 0; c < kColumns; ++c) {
    x[c] = p.x + std::size_t{list.source[c < list.count ? c : 0]} * p.n_in;
    sums[c] = 0.0F;
  }
#pragma unroll 4
  for (std::uint32_t i = lane_of_warp(); i < p.n_in; i += kWarp) {
    const float weight = weights.at(i);
    for (std::uint32_t c = 0; c < kColumns; ++c) sums[c] = fmaf(weight, x[c][i], sums[c]);
  }
  for (std::uint32_t c = 0; c < kColumns; ++c) {
    const float sum = fold_warp(sums[c]);
    if (lane_of_warp() != 0 || c >= list.count) continue;
    const float value =
        p.bias != nullptr ? sum + p.bias[bias_index(p.experts, p.n_out, output)] : sum;
    float* out = p.out + std::size_t{list.target[c]} * p.out_stride + output;
    *out = p.accumulate != 0 ? *out + value : value;
  }
}

/// Grid: x: n_out / 4, one warp per output; y: groups of kColumns results, or experts. Bound by
/// reading the weights.
template <class Row, std::uint32_t kColumns>
__device__ __forceinline__ void matmul_floats(const FloatMatmulParams& p, ColumnList& list) {
  const std::uint32_t end = result_count(p.gate, p.count);
  if (block_engine_is_stopped(p.gate)) return;
  start_columns<kColumns>(list, p.experts);
  const std::uint32_t output = blockIdx.x * 4 + warp_of_block();
  const std::size_t row = std::size_t{expert_of_block(p.experts)} * p.n_out + output;
  while (gather_columns<kColumns>(list, p, end)) {
    if (output < p.n_out)
      float_products<kColumns>(p, list, Row(p, p.weights + row * p.row_bytes), output);
    if (!p.experts.has_several()) return;
  }
}

LEASEHOLD_KERNEL(lh_matmul_f32_1, FloatMatmulParams, 128) {
  __shared__ ColumnList list;
  matmul_floats<FloatRow, 1>(p, list);
}
LEASEHOLD_KERNEL(lh_matmul_f32_8, FloatMatmulParams, 128) {
  __shared__ ColumnList list;
  matmul_floats<FloatRow, 8>(p, list);
}
LEASEHOLD_KERNEL(lh_matmul_rows_1, FloatMatmulParams, 128) {
  __shared__ ColumnList list;
  matmul_floats<WidenedRow, 1>(p, list);
}
LEASEHOLD_KERNEL(lh_matmul_rows_8, FloatMatmulParams, 128) {
  __shared__ ColumnList list;
  matmul_floats<WidenedRow, 8>(p, list);
}

}  // namespace leasehold::device
