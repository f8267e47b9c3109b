/// Weighted sums of a partition's values, with the reference's bits: one thread adds all positions
/// of one element of a query's sum, in order.
#pragma once

#include "kernels/cuda/device/attention/attention_scores.cuh"

namespace leasehold::device {

/// Each thread sums two neighbouring elements of each span, for kQueriesPerThread queries.
inline constexpr std::uint32_t kPairThreads = kThreadsPerQuery;
template <int kQueriesPerThread, std::uint32_t kPairSpans>
struct ValueSums {
  std::uint32_t element;                   ///< The first element of the pair.
  std::uint32_t query;                     ///< The first of kQueriesPerThread queries.
  std::uint32_t skips[kQueriesPerThread];  ///< Query q adds positions [skips, reads).
  std::uint32_t reads[kQueriesPerThread];
  float2 acc[kPairSpans][kQueriesPerThread];
};

/// The sums of this thread, with zero accumulators.
template <int kQueriesPerThread, std::uint32_t kPairSpans>
__device__ __forceinline__ ValueSums<kQueriesPerThread, kPairSpans> value_sums(
    const AttentionParams& p, const AttentionTile& tile) {
  ValueSums<kQueriesPerThread, kPairSpans> sums;
  sums.element = threadIdx.x % kPairThreads * 2;
  sums.query = threadIdx.x / kPairThreads * kQueriesPerThread;
#pragma unroll
  for (int q = 0; q < kQueriesPerThread; ++q) {
    sums.skips[q] = query_skips(p, tile, sums.query + q);
    sums.reads[q] = query_reads(p, tile, sums.query + q);
    for (std::uint32_t s = 0; s < kPairSpans; ++s) sums.acc[s][q] = {0.0F, 0.0F};
  }
  return sums;
}

/// Values in shared memory, the thread's elements, and the weights of its queries.
template <class Stored>
struct WeightedValues {
  KvRows<Stored> values;  ///< Starts at the first position.
  const float* weights;   ///< [kQueriesPerThread queries, stride 256], starts at the first position
};

/// Adds positions that every query reads; the count is a multiple of four.
template <class Stored, int kQueriesPerThread>
__device__ __forceinline__ void add_common(const WeightedValues<Stored>& from, std::uint32_t count,
                                           float2 (&acc)[kQueriesPerThread]) {
  for (std::uint32_t i = 0; i < count; i += 4) {
    float4 e[kQueriesPerThread];
#pragma unroll
    for (int q = 0; q < kQueriesPerThread; ++q)
      e[q] = *reinterpret_cast<const float4*>(from.weights + q * kPartitionPositions + i);
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const float2 v = load_pair(from.values, i + s);
#pragma unroll
      for (int q = 0; q < kQueriesPerThread; ++q) {
        const float weight = s == 0 ? e[q].x : s == 1 ? e[q].y : s == 2 ? e[q].z : e[q].w;
        acc[q].x = fmaf(weight, v.x, acc[q].x);
        acc[q].y = fmaf(weight, v.y, acc[q].y);
      }
    }
  }
}

/// Adds positions first ... span.count - 1, which only some queries read.
template <class Stored, int kQueriesPerThread, std::uint32_t kPairSpans>
__device__ __forceinline__ void add_rest(const WeightedValues<Stored>& from, std::uint32_t first,
                                         const KvSpan& span,
                                         const ValueSums<kQueriesPerThread, kPairSpans>& sums,
                                         float2 (&acc)[kQueriesPerThread]) {
  for (std::uint32_t i = first; i < span.count; ++i) {
    const float2 v = load_pair(from.values, i);
#pragma unroll
    for (int q = 0; q < kQueriesPerThread; ++q) {
      if (span.first + i < sums.skips[q] || span.first + i >= sums.reads[q]) continue;
      const float weight = from.weights[q * kPartitionPositions + i];
      acc[q].x = fmaf(weight, v.x, acc[q].x);
      acc[q].y = fmaf(weight, v.y, acc[q].y);
    }
  }
}

/// Adds one span of values for the thread's queries.
template <class Stored, int kQueriesPerThread, std::uint32_t kPairSpans>
__device__ __forceinline__ void add_values(const AttentionParams& p, const AttentionTile& tile,
                                           const KvSpan& span, const std::byte* rows,
                                           const float* scores,
                                           ValueSums<kQueriesPerThread, kPairSpans>& sums) {
  if (sums.query >= tile.n_queries()) return;
  const bool is_in_all_windows = tile.last_skips <= span.first;
  // The number of positions, from the first one of the span on, that all queries read.
  const std::uint32_t of_all =
      is_in_all_windows && tile.first_reads > span.first ? tile.first_reads - span.first : 0;
  const std::uint32_t common = (of_all < span.count ? of_all : span.count) / 4 * 4;
#pragma unroll
  for (std::uint32_t s = 0; s < kPairSpans; ++s) {
    const std::uint32_t element = sums.element + s * 2 * kPairThreads;
    if (element >= p.value_dim) break;
    const WeightedValues<Stored> from{kv_rows<Stored>(p, rows, 0, element),
                                      scores + sums.query * kPartitionPositions + span.first};
    add_common<Stored, kQueriesPerThread>(from, common, sums.acc[s]);
    add_rest<Stored>(from, common, span, sums, sums.acc[s]);
  }
}

template <int kQueriesPerThread, std::uint32_t kPairSpans>
__device__ __forceinline__ void store_values(const AttentionParams& p, const AttentionTile& tile,
                                             const ValueSums<kQueriesPerThread, kPairSpans>& sums) {
#pragma unroll
  for (int q = 0; q < kQueriesPerThread; ++q) {
    if (sums.reads[q] <= sums.skips[q]) continue;
    float* out = p.partials.acc + partial_of(p, tile, sums.query + q) * p.value_dim;
#pragma unroll
    for (std::uint32_t s = 0; s < kPairSpans; ++s) {
      const std::uint32_t d = sums.element + s * 2 * kPairThreads;
      if (d < p.value_dim) out[d] = sums.acc[s][q].x;
      if (d + 1 < p.value_dim) out[d + 1] = sums.acc[s][q].y;
    }
  }
}

}  // namespace leasehold::device
