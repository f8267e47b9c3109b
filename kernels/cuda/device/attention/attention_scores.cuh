/// Scores of a partition's keys and their exponentials, with the reference's bits.
///
/// One thread computes the product of a key and a query. The 32 sums of ordered_dot form four
/// groups of eight, one after another: group g adds the octets g, g + 4, ... of the row.
#pragma once

#include "kernels/cuda/device/attention/kv_rows.cuh"
#include "kernels/numerics/elementwise.hpp"

namespace leasehold::device {

/// Multiplies octets first, first + 4, ... of a key with those of several queries, and adds the
/// products to eight lanes per query.
template <class Stored, int kQueries>
__device__ __forceinline__ void add_octets(const KvRows<Stored>& key, const float* queries,
                                           std::uint32_t n_octets, std::uint32_t first,
                                           float (&lanes)[kQueries][8]) {
#pragma unroll 2
  for (std::uint32_t o = first; o < n_octets; o += 4) {
    float k[8];
    load_octet(key, o, k);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      float q[8];
      load_octet(queries + (i * n_octets + o) * 8, q);
#pragma unroll
      for (int j = 0; j < 8; ++j) lanes[i][j] = fmaf(q[j], k[j], lanes[i][j]);
    }
  }
}

/// ordered_dot of each query with the key.
template <class Stored, int kQueries>
__device__ __forceinline__ void dots(const KvRows<Stored>& key, const float* queries,
                                     std::uint32_t n_octets, float (&out)[kQueries]) {
  float sums[2][kQueries][8];
#pragma unroll
  for (std::uint32_t odd = 0; odd < 2; ++odd) {
    float low[kQueries][8] = {};
    float high[kQueries][8] = {};
    add_octets(key, queries, n_octets, odd, low);
    add_octets(key, queries, n_octets, odd + 2, high);
#pragma unroll
    for (int i = 0; i < kQueries; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[odd][i][j] = low[i][j] + high[i][j];
  }
#pragma unroll
  for (int i = 0; i < kQueries; ++i) {
    float eight[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) eight[j] = sums[0][i][j] + sums[1][i][j];
#pragma unroll
    for (int half = 4; half > 0; half /= 2)
#pragma unroll
      for (int j = 0; j < half; ++j) eight[j] += eight[j + half];
    out[i] = eight[0];
  }
}

/// The layout of a block's shared memory. Scores are [kTile queries][256 positions].
struct AttentionShared {
  float* queries;
  float* newest;  ///< The newest key and value, if the block prepares them.
  float* scores;
  std::byte* rows;  ///< n_buffers buffers of tile_positions rows.
};

/// kNewest: rows of `newest`, 0 or 2.
template <int kTile, int kNewest = 0>
__device__ __forceinline__ AttentionShared shared_of(const AttentionParams& p) {
  auto* floats = reinterpret_cast<float*>(dynamic_shared());
  const std::uint32_t width = 8 * octets(p.head_dim);
  AttentionShared shared;
  shared.queries = floats;
  shared.newest = floats + kTile * width;
  shared.scores = shared.newest + kNewest * width;
  shared.rows = reinterpret_cast<std::byte*>(shared.scores + kTile * kPartitionPositions);
  return shared;
}

/// The score of a product.
__device__ __forceinline__ float score_of(const AttentionParams& p, float dot) {
  const float score = dot * p.scale;
  return p.softcap > 0.0F ? softcapped(score, p.softcap) : score;
}

/// Each thread computes one key and kQueriesPerThread queries at a time.
template <class Stored, int kTile, int kQueriesPerThread>
__device__ __forceinline__ void score_keys(const AttentionParams& p, const AttentionShared& shared,
                                           std::uint32_t n_queries, const KvSpan& span,
                                           const std::byte* keys) {
  const std::uint32_t n_octets = octets(p.head_dim);
  for (std::uint32_t unit = threadIdx.x; unit < p.tile_positions * (kTile / kQueriesPerThread);
       unit += blockDim.x) {
    const std::uint32_t position = unit % p.tile_positions;
    const std::uint32_t query = unit / p.tile_positions * kQueriesPerThread;
    if (position >= span.count || query >= n_queries) continue;
    float out[kQueriesPerThread];
    dots<Stored, kQueriesPerThread>(kv_rows<Stored>(p, keys, position, 0),
                                    shared.queries + query * n_octets * 8, n_octets, out);
#pragma unroll
    for (int i = 0; i < kQueriesPerThread; ++i)
      shared.scores[(query + i) * kPartitionPositions + span.first + position] =
          score_of(p, out[i]);
  }
}

/// The largest `own` of the warp. Skips NaN, as max_score does.
__device__ __forceinline__ float warp_max(float own) {
  for (std::uint32_t distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, own, distance);
    own = other > own ? other : own;
  }
  return own;
}

/// Replaces scores by their exponentials; one warp per query. Lane i has positions i mod 32.
__device__ __forceinline__ void softmax_weights(const AttentionParams& p, const AttentionTile& tile,
                                                float* all_scores) {
  for (std::uint32_t query = warp_of_block(); query < tile.n_queries();
       query += blockDim.x / kWarp) {
    const std::uint32_t n = query_reads(p, tile, query);
    const std::uint32_t skipped = query_skips(p, tile, query);
    if (n <= skipped) continue;
    float* scores = all_scores + query * kPartitionPositions;
    float max = __uint_as_float(0xff800000);
    std::uint32_t first = skipped / kWarp * kWarp + lane_of_warp();
    if (first < skipped) first += kWarp;
    for (std::uint32_t i = first; i < n; i += kWarp) max = scores[i] > max ? scores[i] : max;
    max = warp_max(max);
    float own = 0.0F;
    for (std::uint32_t i = first; i < n; i += kWarp) {
      const float weight = exp_f32(scores[i] - max);
      scores[i] = weight;
      own += weight;
    }
    const float sum = fold_warp(own);
    if (lane_of_warp() != 0) continue;
    float* out = p.partials.max_sum + 2 * partial_of(p, tile, query);
    out[0] = max;
    out[1] = sum;
  }
}

}  // namespace leasehold::device
