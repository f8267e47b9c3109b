/// out = x / sqrt(mean(x²) + epsilon) · weight, with the reference's bits: one warp sums the
/// squares in the lanes of ordered_dot.
#include "kernels/cuda/device/int8_rows.cuh"
#include "kernels/cuda/device/norm_params.hpp"
#include "kernels/cuda/device/tiles.cuh"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

__device__ __forceinline__ float norm_factor(float sum_of_squares, std::uint32_t width,
                                             float epsilon) {
  return 1.0F / sqrtf(sum_of_squares / static_cast<float>(width) + epsilon);
}

/// One block per row. Dynamic shared memory: [width] floats if fits_shared.
LEASEHOLD_KERNEL(lh_rms_norm, RmsNormParams, 256) {
  __shared__ float factor;
  __shared__ std::uint32_t scratch[32];
  const std::uint32_t row = blockIdx.x;
  const bool exists = row < row_count(p.gate);
  if (block_engine_is_stopped(p.gate) || !exists) return;
  const float* x = p.x + std::size_t{row} * p.width;
  float* out = p.out + std::size_t{row} * p.width;
  const float* values = x;
  if (p.fits_shared != 0) {
    auto* copy = reinterpret_cast<float*>(dynamic_shared());
    for (std::uint32_t i = threadIdx.x; i < p.width; i += blockDim.x) copy[i] = x[i];
    values = copy;
    __syncthreads();
  }
  if (warp_of_block() == 0) {
    const float sum = warp_dot(values, values, p.width);
    if (threadIdx.x == 0) factor = norm_factor(sum, p.width, p.epsilon);
  }
  __syncthreads();
  std::uint32_t largest = 0;
  for (std::uint32_t i = threadIdx.x; i < p.width; i += blockDim.x) {
    const float value = (values[i] * factor) * p.weight[i];
    out[i] = value;
    largest = largest > magnitude_bits(value) ? largest : magnitude_bits(value);
  }
  if (p.tiles.halves != nullptr) store_tile_row(p.tiles, row, out, block_max(largest, scratch));
  if (p.rounded.q == nullptr) return;
  __syncthreads();
  round_whole_row(p.rounded, row, out);
}

/// One warp per vector: the heads of rows. Grid: vectors / 4, rows.
LEASEHOLD_KERNEL(lh_rms_norm_heads, RmsNormParams, 128) {
  if (warp_engine_is_stopped(p.gate)) return;
  const std::uint32_t vector = blockIdx.x * (blockDim.x / kWarp) + warp_of_block();
  if (blockIdx.y >= row_count(p.gate) || vector >= p.n_vectors) return;
  const std::size_t at = (std::size_t{blockIdx.y} * p.n_vectors + vector) * p.width;
  const float* x = p.x + at;
  const float factor = norm_factor(warp_dot(x, x, p.width), p.width, p.epsilon);
  for (std::uint32_t i = lane_of_warp(); i < p.width; i += kWarp)
    p.out[at + i] = (x[i] * factor) * p.weight[i];
}

}  // namespace leasehold::device
