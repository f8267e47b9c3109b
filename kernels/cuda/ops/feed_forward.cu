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
  largest = block_max(threadIdx.x < gridDim.x ? load_arrived(parts + threadIdx.x) : 0, scratch);
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
  const float* up = p.up + row * p.up_stride;
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

/// The warp's highest-ranked candidate; the expert n_experts ranks below all others.
__device__ __forceinline__ RankedExpert first_of_warp(RankedExpert own, std::uint32_t n_experts) {
  for (std::uint32_t distance = kWarp / 2; distance > 0; distance /= 2) {
    const RankedExpert other{.key = __shfl_xor_sync(kAllLanes, own.key, distance),
                             .expert = __shfl_xor_sync(kAllLanes, own.expert, distance)};
    const bool is_before =
        other.expert < n_experts && (own.expert == n_experts || ranks_before(other, own));
    own = is_before ? other : own;
  }
  return own;
}

/// The highest-ranked expert of the row by `rank_of`, among those that `is_left` admits.
template <class RankOf, class IsLeft>
__device__ __forceinline__ RankedExpert best_expert(std::uint32_t n_experts, RankOf&& rank_of,
                                                    IsLeft&& is_left) {
  RankedExpert best{.key = 0.0F, .expert = n_experts};
  for (std::uint32_t e = lane_of_warp(); e < n_experts; e += kWarp) {
    const RankedExpert candidate = rank_of(e);
    if (is_left(candidate) && (best.expert == n_experts || ranks_before(candidate, best)))
      best = candidate;
  }
  return first_of_warp(best, n_experts);
}

/// The row's scores with what probabilities need of all experts.
__device__ __forceinline__ RoutedRow routed_row(const ExpertRoutingParams& p, std::uint32_t row) {
  RoutedRow routed{.scores = p.scores + std::size_t{row} * p.n_experts,
                   .bias = p.bias,
                   .gating = p.gating,
                   .group_size = p.n_groups > 1 ? p.n_experts / p.n_groups : 0};
  if (p.gating == ExpertGating::Sigmoid) return routed;
  routed.highest_score = best_expert(
                             p.n_experts, [&](std::uint32_t e) { return routed.by_score(e); },
                             [](RankedExpert) { return true; })
                             .key;
  if (!routed.needs_probabilities() && p.normalize_expert_weights != 0) return routed;
  float own_sum = 0.0F;
  for (std::uint32_t e = lane_of_warp(); e < p.n_experts; e += kWarp) own_sum += routed.term(e);
  routed.total = fold_warp(own_sum);
  return routed;
}

/// Same as best_groups; each lane scores one group.
__device__ __forceinline__ std::uint32_t best_groups(const ExpertRoutingParams& p,
                                                     const RoutedRow& routed) {
  static_assert(kMaxExpertGroups <= kWarp);
  const std::uint32_t lane = lane_of_warp();
  RankedExpert own{.key = 0.0F, .expert = p.n_groups};
  if (lane < p.n_groups) own = ranked_group(routed, lane);
  std::uint32_t groups = 0;
  for (std::uint32_t k = 0; k < p.n_groups_used; ++k) {
    const std::uint32_t best = first_of_warp(own, p.n_groups).expert;
    groups |= 1u << best;
    if (best == lane) own.expert = p.n_groups;
  }
  return groups;
}

/// One warp per row. The choice and the weights equal those of select_experts
/// (kernels/numerics/expert_routing.hpp).
LEASEHOLD_KERNEL(lh_expert_routing, ExpertRoutingParams, 32) {
  if (warp_engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.x;
  if (row >= row_count(p.gate)) return;
  const std::uint32_t lane = lane_of_warp();
  RoutedRow routed = routed_row(p, row);
  if (p.n_groups > 1) routed.allowed_groups = best_groups(p, routed);
  std::uint32_t* chosen = p.chosen + std::size_t{row} * p.n_used;
  float* weights = p.weights + std::size_t{row} * p.n_used;
  RankedExpert last{};
  float own_sum = 0.0F;
  for (std::uint32_t k = 0; k < p.n_used; ++k) {
    last = best_expert(
        p.n_experts, [&](std::uint32_t e) { return routed.ranked(e); },
        [&](RankedExpert candidate) {
          return routed.allows(candidate.expert) && (k == 0 || ranks_before(last, candidate));
        });
    const float term = routed.term(last.expert);
    if (lane == 0) {
      chosen[k] = last.expert;
      weights[k] = term;
    }
    if (k % kWarp == lane) own_sum += term;
  }
  const float sum = fold_warp(own_sum);
  __syncwarp();
  for (std::uint32_t k = lane; k < p.n_used; k += kWarp) {
    const float weight =
        expert_weight(routed, weights[k], sum, p.normalize_expert_weights != 0, p.scale);
    weights[k] = p.expert_scales != nullptr ? weight * p.expert_scales[chosen[k]] : weight;
  }
}

/// Grid: columns / 256, rows.
LEASEHOLD_KERNEL(lh_weighted_sum, WeightedSumParams, 256) {
  if (engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= row_count(p.gate) || i >= p.width) return;
  float sum = p.accumulate != 0 ? p.out[std::size_t{row} * p.width + i] : 0.0F;
  for (std::uint32_t k = 0; k < p.n_terms; ++k) {
    const std::size_t term = std::size_t{row} * p.n_terms + k;
    const float weight = p.applies_sigmoid != 0 ? sigmoid(p.weights[term]) : p.weights[term];
    sum = fmaf(weight, p.x[term * p.width + i], sum);
  }
  p.out[std::size_t{row} * p.width + i] = sum;
}

}  // namespace leasehold::device
