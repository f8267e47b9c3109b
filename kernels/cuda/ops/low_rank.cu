/// The products of adapters, with the reference's bits: each lane adds its elements of A·x in
/// ascending order, then the lanes fold in halves; each thread adds the rows of B to one output.
#include "kernels/cuda/device/low_rank_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"
#include "kernels/quant/element.hpp"

namespace leasehold::device {

template <TensorType kType>
__device__ __forceinline__ float low_rank_element(const std::byte* row, std::size_t i) {
  if constexpr (kType == TensorType::F32) return reinterpret_cast<const float*>(row)[i];
  if constexpr (kType == TensorType::F16) return read_half(row + i * sizeof(std::uint16_t));
  return read_bfloat(row + i * sizeof(std::uint16_t));
}

__device__ __forceinline__ const DeviceLowRank& matrix_of_row(const LowRankParams& p,
                                                              std::uint32_t row,
                                                              std::uint32_t slot) {
  const std::size_t sequence = p.gate.rows[row].sequence;
  return p.adapters.matrices[sequence * p.adapters.n_slots + slot];
}

/// Rows [first, first + count) of live sequences whose matrices are the same.
struct RowRun {
  std::uint32_t first;
  std::uint32_t count;
};

/// The run from `row` on, before `end`; empty if the row has no matrix. The whole warp must call
/// this function.
__device__ __forceinline__ RowRun run_from(const LowRankParams& p, std::uint32_t slot,
                                           std::uint32_t row, std::uint32_t end) {
  const DeviceLowRank& matrix = matrix_of_row(p, row, slot);
  RowRun run{row, 0};
  if (matrix.rank == 0) return run;
  while (row + run.count < end) {
    const std::uint32_t next = row + run.count;
    const DeviceLowRank& other = matrix_of_row(p, next, slot);
    if (other.rank == 0 || other.a != matrix.a || !warp_row_is_live(p.gate, next)) break;
    ++run.count;
  }
  return run;
}

/// h of rank element `k`, for a run of rows.
template <TensorType kType, std::uint32_t kRows>
__device__ __forceinline__ void reduce_run(const LowRankParams& p, const DeviceLowRank& matrix,
                                           const RowRun& run, std::uint32_t k, float* h) {
  constexpr std::size_t kBytes = kType == TensorType::F32 ? sizeof(float) : sizeof(std::uint16_t);
  const std::byte* a =
      reinterpret_cast<const std::byte*>(matrix.a) + std::size_t{k} * p.n_in * kBytes;
  const float* x[kRows];  // [n_in] each; entries beyond the run repeat its first row
  float sums[kRows];
  for (std::uint32_t r = 0; r < kRows; ++r) {
    x[r] = p.x + std::size_t{run.first + (r < run.count ? r : 0)} * p.n_in;
    sums[r] = 0.0F;
  }
#pragma unroll 4
  for (std::uint32_t i = lane_of_warp(); i < p.n_in; i += kWarp) {
    const float weight = low_rank_element<kType>(a, i);
    for (std::uint32_t r = 0; r < kRows; ++r) sums[r] = fmaf(weight, x[r][i], sums[r]);
  }
  const std::size_t row_stride = std::size_t{p.n_products} * p.max_rank;
  for (std::uint32_t r = 0; r < kRows; ++r) {
    const float dot = fold_warp(sums[r]);
    if (lane_of_warp() == 0 && r < run.count)
      h[(run.first + r) * row_stride + k] = matrix.scale * dot;
  }
}

template <std::uint32_t kRows>
__device__ __forceinline__ void reduce_run(const LowRankParams& p, const DeviceLowRank& matrix,
                                           const RowRun& run, std::uint32_t k, float* h) {
  if (matrix.type == TensorType::F32)
    return reduce_run<TensorType::F32, kRows>(p, matrix, run, k, h);
  if (matrix.type == TensorType::F16)
    return reduce_run<TensorType::F16, kRows>(p, matrix, run, k, h);
  reduce_run<TensorType::BF16, kRows>(p, matrix, run, k, h);
}

/// h = scale · A·x. Grid: x: max_rank / 4, one warp per element of h; y: rows / rows_per_block; z:
/// products.
LEASEHOLD_KERNEL(lh_low_rank_reduce, LowRankParams, 128) {
  if (warp_engine_is_stopped(p.gate)) return;
  const LowRankParams::Product& product = p.products[blockIdx.z];
  const std::uint32_t k = blockIdx.x * 4 + warp_of_block();
  const std::uint32_t begin = blockIdx.y * p.rows_per_block;
  const std::uint32_t n_rows = row_count(p.gate);
  const std::uint32_t end = begin + p.rows_per_block < n_rows ? begin + p.rows_per_block : n_rows;
  float* const h = p.h + std::size_t{blockIdx.z} * p.max_rank;
  for (std::uint32_t row = begin; row < end;) {
    const RowRun run = run_from(p, product.slot, row, end);
    const DeviceLowRank& matrix = matrix_of_row(p, row, product.slot);
    if (run.count > 0 && k < matrix.rank) {
      if (run.count == 1)
        reduce_run<1>(p, matrix, run, k, h);
      else
        reduce_run<kLowRankRows>(p, matrix, run, k, h);
    }
    row += run.count > 0 ? run.count : 1;
  }
}

template <TensorType kType>
__device__ __forceinline__ void expand_row(const DeviceLowRank& matrix, const float* h,
                                           std::uint32_t n_out, std::uint32_t output, float& out) {
  const auto* b = reinterpret_cast<const std::byte*>(matrix.b);
  float sum = out;
#pragma unroll 8
  for (std::uint32_t k = 0; k < matrix.rank; ++k)
    sum = fmaf(low_rank_element<kType>(b, std::size_t{k} * n_out + output), h[k], sum);
  out = sum;
}

/// out += B·h. Grid: x: outputs / blockDim, one per thread; y: rows / rows_per_block; z: products.
LEASEHOLD_KERNEL(lh_low_rank_expand, LowRankParams, 128) {
  if (warp_engine_is_stopped(p.gate)) return;
  const LowRankParams::Product& product = p.products[blockIdx.z];
  const std::uint32_t output = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t begin = blockIdx.y * p.rows_per_block;
  for (std::uint32_t row = begin; row < begin + p.rows_per_block && row < row_count(p.gate);
       ++row) {
    const DeviceLowRank& matrix = matrix_of_row(p, row, product.slot);
    if (matrix.rank == 0 || !warp_row_is_live(p.gate, row) || output >= product.n_out) continue;
    const float* h = p.h + (std::size_t{row} * p.n_products + blockIdx.z) * p.max_rank;
    float& out = product.out[std::size_t{row} * product.n_out + output];
    if (matrix.type == TensorType::F32)
      expand_row<TensorType::F32>(matrix, h, product.n_out, output, out);
    else if (matrix.type == TensorType::F16)
      expand_row<TensorType::F16>(matrix, h, product.n_out, output, out);
    else
      expand_row<TensorType::BF16>(matrix, h, product.n_out, output, out);
  }
}

}  // namespace leasehold::device
