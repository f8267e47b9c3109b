/// Scores of the register tile and their exponentials, with the reference's bits.
///
/// A thread multiplies eight queries with two keys. It adds two neighbouring lanes of ordered_dot
/// at a time, depth first in the tree in which fold_lanes adds them, so that five pairs of lanes at
/// most are in registers.
///
/// Threads: the whole block calls each function.
#pragma once

#include "kernels/cuda/device/attention/prompt_tile.cuh"

namespace leasehold::device {

/// What a thread multiplies, from some element on.
template <class Stored>
struct PromptOperands {
  KvRows<Stored> keys;   ///< Rows 0 and kStripKeys / 2.
  const float* queries;  ///< The thread's words of a pair of elements.

  /// `element` is even; it is a multiple of 32 unless this begins at element 0.
  __device__ PromptOperands from(std::uint32_t element) const {
    return {keys.from(element), queries + element / 2 * kPromptPairStride};
  }
};

/// Sums of products, [queries][keys][two lanes].
using PairSums = float[kPromptRows][2][2];

/// Adds the products of the first two elements to `sums`, or to zeros.
template <bool kIsFirst, class Stored>
__device__ __forceinline__ void add_pair(const PromptOperands<Stored>& from, PairSums& sums) {
  const float2 k[2] = {load_pair(from.keys, 0), load_pair(from.keys, kStripKeys / 2)};
#pragma unroll
  for (std::uint32_t two = 0; two < kPromptRows / 2; ++two) {
    const float4 q = *reinterpret_cast<const float4*>(from.queries + two * 4 * kPromptGroups);
#pragma unroll
    for (int key = 0; key < 2; ++key) {
      float(&first)[2] = sums[2 * two][key];
      float(&second)[2] = sums[2 * two + 1][key];
      first[0] = fmaf(q.x, k[key].x, kIsFirst ? 0.0F : first[0]);
      first[1] = fmaf(q.y, k[key].y, kIsFirst ? 0.0F : first[1]);
      second[0] = fmaf(q.z, k[key].x, kIsFirst ? 0.0F : second[0]);
      second[1] = fmaf(q.w, k[key].y, kIsFirst ? 0.0F : second[1]);
    }
  }
}

__device__ __forceinline__ void set_zero(PairSums& sums) {
#pragma unroll
  for (std::uint32_t i = 0; i < kPromptRows; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j / 2][j % 2] = 0.0F;
}

/// Computes lanes kLane and kLane + 1 of products, as they are once fold_lanes has added all lanes
/// at multiples of kDistance from them. Products have kWidth elements; 0: `width` elements.
template <std::uint32_t kWidth, std::uint32_t kDistance, std::uint32_t kLane, class Stored>
__device__ __forceinline__ void sum_lanes(const PromptOperands<Stored>& operands,
                                          std::uint32_t width, PairSums& sums) {
  if constexpr (kDistance < kWarp) {
    PairSums later;
    sum_lanes<kWidth, 2 * kDistance, kLane>(operands, width, sums);
    sum_lanes<kWidth, 2 * kDistance, kLane + kDistance>(operands, width, later);
#pragma unroll
    for (std::uint32_t i = 0; i < kPromptRows; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j / 2][j % 2] += later[i][j / 2][j % 2];
  } else if constexpr (kWidth != 0) {
    add_pair<true>(operands.from(kLane), sums);
#pragma unroll
    for (std::uint32_t d = kLane + kWarp; d < kWidth; d += kWarp)
      add_pair<false>(operands.from(d), sums);
  } else {
    if (kLane >= width) return set_zero(sums);
    PromptOperands<Stored> from = operands.from(kLane);
    add_pair<true>(from, sums);
#pragma unroll 1
    for (std::uint32_t d = kLane + kWarp; d < width; d += kWarp) {
      from = from.from(kWarp);
      add_pair<false>(from, sums);
    }
  }
}

/// Stores the scores of eight queries and one key; `key` selects the sums.
__device__ __forceinline__ void store_scores(const AttentionParams& p, const PairSums& sums,
                                             std::uint32_t key, float* to) {
#pragma unroll
  for (std::uint32_t i = 0; i < kPromptRows; ++i)
    to[i] = (sums[i][key][0] + sums[i][key][1]) * p.scale;
  if (p.softcap <= 0.0F) return;
#pragma unroll 1
  for (std::uint32_t i = 0; i < kPromptRows; ++i) to[i] = softcapped(to[i], p.softcap);
}

/// Each warp computes strips of keys. Its lanes are four groups of queries times eight keys.
template <class Stored, std::uint32_t kWidth>
__device__ __forceinline__ void score_strips(const AttentionParams& p, const PromptShared& shared,
                                             const KvSpan& span, const std::byte* keys) {
  const std::uint32_t group = lane_of_warp() % kPromptGroups;
  for (std::uint32_t strip = warp_of_block() * kStripKeys; strip < span.count;
       strip += blockDim.x / kWarp * kStripKeys) {
    const std::uint32_t first = strip + lane_of_warp() / kPromptGroups;
    PairSums sums;
    sum_lanes<kWidth, 2, 0>(
        PromptOperands<Stored>{kv_rows<Stored>(p, keys, first, 0), shared.queries + 4 * group},
        8 * octets(p.head_dim), sums);
    float* to = shared.scores + (span.first + first) * kPromptQueries + group * kPromptRows;
    store_scores(p, sums, 0, to);
    store_scores(p, sums, 1, to + kStripKeys / 2 * kPromptQueries);
  }
}

/// The usual widths have code of their own, without loops. Floats would need too many registers.
template <class Stored>
__device__ __forceinline__ void score_prompt(const AttentionParams& p, const PromptShared& shared,
                                             const KvSpan& span, const std::byte* keys) {
  if constexpr (!std::is_same_v<Stored, float>) {
    if (p.head_dim == 128) return score_strips<Stored, 128>(p, shared, span, keys);
    if (p.head_dim == 64) return score_strips<Stored, 64>(p, shared, span, keys);
  }
  score_strips<Stored, 0>(p, shared, span, keys);
}

/// Replaces scores by their exponentials and stores the queries' maxima and sums. A thread has one
/// query and eight lanes of ordered_sum: warp w has lanes 8w … 8w + 7.
__device__ __forceinline__ void weigh_prompt(const AttentionParams& p, const AttentionTile& tile,
                                             const PromptShared& shared) {
  constexpr std::uint32_t kLanes = 8;
  constexpr std::uint32_t kWarps = kPromptThreads / kWarp;
  static_assert(kPromptQueries == kWarp && kWarps * kLanes == kWarp);
  __shared__ float maxima[kWarps][kPromptQueries];
  __shared__ float lanes[kWarps][kLanes][kPromptQueries];
  const std::uint32_t query = lane_of_warp();
  const std::uint32_t first = warp_of_block() * kLanes;
  const std::uint32_t skips = shared.skips[query];
  const std::uint32_t reads = shared.reads[query];
  float* const scores = shared.scores + query;
  float max = __uint_as_float(0xff800000);
  for (std::uint32_t base = first; base < reads; base += kWarp)
#pragma unroll
    for (std::uint32_t j = 0; j < kLanes; ++j) {
      const float score = scores[(base + j) * kPromptQueries];
      if (base + j >= skips && base + j < reads) max = score > max ? score : max;
    }
  maxima[warp_of_block()][query] = max;
  __syncthreads();
  for (std::uint32_t i = 0; i < kWarps; ++i) max = maxima[i][query] > max ? maxima[i][query] : max;
  float own[kLanes] = {};
  for (std::uint32_t base = first; base < reads; base += kWarp)
#pragma unroll
    for (std::uint32_t j = 0; j < kLanes; ++j) {
      if (base + j < skips || base + j >= reads) continue;
      float& score = scores[(base + j) * kPromptQueries];
      score = exp_f32(score - max);
      own[j] += score;
    }
#pragma unroll
  for (std::uint32_t j = 0; j < kLanes; ++j) lanes[warp_of_block()][j][query] = own[j];
  __syncthreads();
  if (warp_of_block() != 0 || reads <= skips) return;
  float sums[kLanes];
#pragma unroll
  for (std::uint32_t j = 0; j < kLanes; ++j)
    sums[j] = (lanes[0][j][query] + lanes[2][j][query]) + (lanes[1][j][query] + lanes[3][j][query]);
#pragma unroll
  for (std::uint32_t half = kLanes / 2; half > 0; half /= 2)
#pragma unroll
    for (std::uint32_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  float* out = p.partials.max_sum + 2 * partial_of(p, tile, query);
  out[0] = max;
  out[1] = sums[0];
}

}  // namespace leasehold::device
