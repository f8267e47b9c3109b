/// The norm of a few rows, rounded for the matmul of the same block, with the bits of lh_rms_norm.
/// Every block of a launch computes all rows: a few per cent of its instructions, and less time
/// than a launch.
#pragma once

#include "kernels/cuda/device/int8/early_params.hpp"
#include "kernels/cuda/device/int8/int8_rows.cuh"
#include "kernels/cuda/device/norm_terms.cuh"
#include "kernels/cuda/device/weight_chunks.hpp"

namespace leasehold::device {

/// A row after the norm, element by element.
struct NormedRow {
  const float* x;
  const float* weight;
  NormTerms terms;
  float out_scale;

  __device__ __forceinline__ float operator[](std::uint32_t i) const {
    return normed(terms, x[i], weight[i]) * out_scale;
  }
};

/// The rounded rows at `rows` in shared memory. Their q has a stride of its own (EarlyRows), so
/// only `scales` and `sums` may be indexed by row.
__device__ __forceinline__ Int8Rows own_rows(const EarlyMatmulParams& p, std::byte* rows) {
  Int8Rows own = p.matmul.x;
  own.q = reinterpret_cast<std::int8_t*>(rows);
  own.scales = reinterpret_cast<float*>(rows + p.rows.scales_at);
  own.sums = reinterpret_cast<std::int16_t*>(rows + p.rows.sums_at);
  return own;
}

/// Row `row` of own_rows, as the only row.
__device__ __forceinline__ Int8Rows own_row(const EarlyMatmulParams& p, const Int8Rows& rows,
                                            std::uint32_t row) {
  Int8Rows own = rows;
  own.q += row * p.rows.q_stride;
  own.scales += row * (rows.n_in / rows.block);
  own.sums += row * (rows.n_in / kInt8Strip);
  return own;
}

/// Norms and rounds the rows of the list, row i of the step as row i. The whole block must call it;
/// a barrier must follow.
template <std::uint32_t kColumns>
__device__ __forceinline__ void round_normed_rows(const EarlyMatmulParams& p,
                                                  const ColumnList& list, const Int8Rows& to) {
  __shared__ NormTerms terms[kColumns];
  const std::uint32_t n_warps = blockDim.x / kWarp;
  for (std::uint32_t row = warp_of_block(); row < list.count; row += n_warps) {
    const NormTerms computed = warp_norm_terms(p.norm, p.norm.x + std::size_t{row} * p.norm.width);
    if (lane_of_warp() == 0) terms[row] = computed;
  }
  __syncthreads();
  const float out_scale = p.norm.out_scale != nullptr ? *p.norm.out_scale : 1.0F;
  for (std::uint32_t row = 0; row < list.count; ++row) {
    const NormedRow values = {p.norm.x + std::size_t{row} * p.norm.width, p.norm.weight, terms[row],
                              out_scale};
    round_blocks(own_row(p, to, row), 0, values, warp_of_block(), to.n_in / to.block, n_warps);
  }
}

}  // namespace leasehold::device
