/// The operators between the matmuls of a feed-forward layer, dense or with experts.
#include "kernels/cuda/device/feed_forward_params.hpp"
#include "kernels/cuda/device/int8/int8_rows.cuh"
#include "kernels/cuda/device/tiles.cuh"
#include "kernels/cuda/device/warp_collectives.cuh"
#include "kernels/numerics/elementwise.hpp"
#include "kernels/numerics/expert_routing.hpp"

namespace leasehold::device {

/// Returns whether this block is the row's last one to arrive. The last block stores the tiles, and
/// its `largest` becomes the largest of all blocks. `scratch` is shared, [32].
__device__ __forceinline__ bool gather_largest(const SwiGluParams& p, std::uint32_t row,
                                               std::uint32_t& largest, std::uint32_t* scratch) {
  std::uint32_t* parts = p.part_largest + std::size_t{row} * gridDim.x;
  if (threadIdx.x == 0) parts[blockIdx.x] = largest;
  if (!arrive(&p.counters[row], gridDim.x).is_last) return false;
  largest = block_max(threadIdx.x < gridDim.x ? load_acquire(parts + threadIdx.x) : 0, scratch);
  return true;
}

/// Rounds the elements that this block computed, in parts of blockDim.x elements.
__device__ __forceinline__ void round_own_parts(const SwiGluParams& p, std::uint32_t row,
                                                const float* values) {
  const std::uint32_t per_part = blockDim.x / p.rounded.block;
  const std::uint32_t n_blocks = p.width / p.rounded.block;
  for (std::uint32_t first = blockIdx.x * per_part; first < n_blocks;
       first += gridDim.x * per_part) {
    const std::uint32_t end = first + per_part < n_blocks ? first + per_part : n_blocks;
    round_blocks(p.rounded, row, values, first + warp_of_block(), end, blockDim.x / kWarp);
  }
}

/// Grid: blocks per row, at most as many as threads; rows. If tiles are wanted, a row's last block
/// stores them. Rounding needs 512 threads, a multiple of every block size.
LEASEHOLD_KERNEL(lh_swiglu, SwiGluParams, 512) {
  __shared__ std::uint32_t scratch[32];
  const std::uint32_t row = blockIdx.y;
  const bool exists = row < row_count(p.gate);
  if (block_engine_is_stopped(p.gate) || !exists) return;
  float* gates = p.gates + std::size_t{row} * p.width;
  const float* up = p.up + std::size_t{row} * p.width;
  std::uint32_t largest = 0;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < p.width;
       i += gridDim.x * blockDim.x) {
    const float value = gated(p.activation, gates[i], up[i]);
    gates[i] = value;
    largest = largest > magnitude_bits(value) ? largest : magnitude_bits(value);
  }
  if (p.rounded.q != nullptr) {
    __syncthreads();
    round_own_parts(p, row, gates);
  }
  if (p.tiles.halves == nullptr) return;
  largest = block_max(largest, scratch);
  if (gridDim.x > 1 && !gather_largest(p, row, largest, scratch)) return;
  store_tile_row(p.tiles, row, gates, largest);
}

/// Grid: columns / 256, rows.
LEASEHOLD_KERNEL(lh_softcap, SoftcapParams, 256) {
  if (engine_is_stopped(p.gate)) return;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t rows = p.is_logit_rows != 0 ? p.gate.step->n_logit_rows : p.gate.step->n_rows;
  if (blockIdx.y >= rows || i >= p.width) return;
  float& x = p.x[std::size_t{blockIdx.y} * p.width + i];
  x = softcapped(x, p.cap);
}

/// The warp's highest-ranked candidate; n_experts ranks below all experts.
__device__ __forceinline__ std::uint32_t first_of_warp(const float* scores, std::uint32_t own,
                                                       std::uint32_t n_experts) {
  for (std::uint32_t distance = kWarp / 2; distance > 0; distance /= 2) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, own, distance);
    const bool is_before =
        other < n_experts && (own == n_experts || ranks_before(scores, other, own));
    own = is_before ? other : own;
  }
  return own;
}

/// One warp per row. The choice equals that of select_experts
/// (kernels/numerics/expert_routing.hpp).
LEASEHOLD_KERNEL(lh_expert_routing, ExpertRoutingParams, 32) {
  if (warp_engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.x;
  if (row >= row_count(p.gate)) return;
  const std::uint32_t lane = lane_of_warp();
  const float* scores = p.scores + std::size_t{row} * p.n_experts;
  std::uint32_t* chosen = p.chosen + std::size_t{row} * p.n_used;
  float* weights = p.weights + std::size_t{row} * p.n_used;
  std::uint32_t last = p.n_experts;
  float max_score = 0.0F;
  float own_sum = 0.0F;
  for (std::uint32_t k = 0; k < p.n_used; ++k) {
    std::uint32_t best = p.n_experts;
    for (std::uint32_t e = lane; e < p.n_experts; e += kWarp) {
      const bool is_left = k == 0 || ranks_before(scores, last, e);
      if (is_left && (best == p.n_experts || ranks_before(scores, e, best))) best = e;
    }
    last = first_of_warp(scores, best, p.n_experts);
    if (k == 0) max_score = scores[last];
    const float term = exp_f32(scores[last] - max_score);
    if (lane == 0) {
      chosen[k] = last;
      weights[k] = term;
    }
    if (p.normalize_expert_weights != 0 && k % kWarp == lane) own_sum += term;
  }
  if (p.normalize_expert_weights == 0)
    for (std::uint32_t e = lane; e < p.n_experts; e += kWarp)
      own_sum += exp_f32(scores[e] - max_score);
  const float sum = fold_warp(own_sum);
  __syncwarp();
  for (std::uint32_t k = lane; k < p.n_used; k += kWarp) weights[k] = weights[k] / sum;
}

/// Grid: columns / 256, rows.
LEASEHOLD_KERNEL(lh_weighted_sum, WeightedSumParams, 256) {
  if (engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= row_count(p.gate) || i >= p.width) return;
  float sum = p.out[std::size_t{row} * p.width + i];
  for (std::uint32_t k = 0; k < p.n_terms; ++k) {
    const std::size_t term = std::size_t{row} * p.n_terms + k;
    const float weight = p.applies_sigmoid != 0 ? sigmoid(p.weights[term]) : p.weights[term];
    sum = fmaf(weight, p.x[term * p.width + i], sum);
  }
  p.out[std::size_t{row} * p.width + i] = sum;
}

}  // namespace leasehold::device
