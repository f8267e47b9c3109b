/// Weighted sums of the register tile, with the reference's bits: a thread adds all positions of
/// four elements of eight queries, in order.
#pragma once

#include "kernels/cuda/device/attention/prompt_scores.cuh"

namespace leasehold::device {

/// The tiles of a thread: values have up to two per thread.
inline constexpr std::uint32_t kPromptTiles = 2;
static_assert(kPromptTiles * kPromptThreads * 4 >= kPromptGroups * kSpans * kValueSpan);

/// A thread's tile: four elements of the queries of a group.
struct PromptTile {
  std::uint32_t element;
  std::uint32_t query;  ///< The first of eight.
  float sums[kPromptRows][4];
};

/// Positions of a span, counted from its start.
struct SpanRange {
  std::uint32_t begin;
  std::uint32_t end;
};

__device__ __forceinline__ std::uint32_t within(std::uint32_t x, std::uint32_t low,
                                                std::uint32_t high) {
  return x < low ? low : x > high ? high : x;
}

/// The positions of the span that all queries of the group from `query` on read. Later queries
/// begin and end at later positions.
__device__ __forceinline__ SpanRange read_by_all(const AttentionTile& tile,
                                                 const PromptShared& shared, std::uint32_t query,
                                                 const KvSpan& span) {
  const std::uint32_t end = query + kPromptRows;
  const std::uint32_t last = (end < tile.n_queries() ? end : tile.n_queries()) - 1;
  const std::uint32_t span_end = span.first + span.count;
  const std::uint32_t first = within(shared.skips[last], span.first, span_end);
  return {first - span.first, within(shared.reads[query], first, span_end) - span.first};
}

/// Adds position i of the span, whose weights and values are given.
__device__ __forceinline__ void add_weighted(const float* weights, const float4& value,
                                             PromptTile& tile) {
  const float4 low = reinterpret_cast<const float4*>(weights)[0];
  const float4 high = reinterpret_cast<const float4*>(weights)[1];
  const float all[kPromptRows] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (std::uint32_t q = 0; q < kPromptRows; ++q) {
    tile.sums[q][0] = fmaf(all[q], value.x, tile.sums[q][0]);
    tile.sums[q][1] = fmaf(all[q], value.y, tile.sums[q][1]);
    tile.sums[q][2] = fmaf(all[q], value.z, tile.sums[q][2]);
    tile.sums[q][3] = fmaf(all[q], value.w, tile.sums[q][3]);
  }
}

/// The same for a position that only some queries read.
__device__ __forceinline__ void add_if_read(const PromptShared& shared, std::uint32_t position,
                                            const float* weights, const float4& value,
                                            PromptTile& tile) {
#pragma unroll
  for (std::uint32_t q = 0; q < kPromptRows; ++q) {
    const std::uint32_t query = tile.query + q;
    if (position < shared.skips[query] || position >= shared.reads[query]) continue;
    tile.sums[q][0] = fmaf(weights[q], value.x, tile.sums[q][0]);
    tile.sums[q][1] = fmaf(weights[q], value.y, tile.sums[q][1]);
    tile.sums[q][2] = fmaf(weights[q], value.z, tile.sums[q][2]);
    tile.sums[q][3] = fmaf(weights[q], value.w, tile.sums[q][3]);
  }
}

/// The tiles of this thread, with zero sums.
struct PromptValues {
  PromptTile tiles[kPromptTiles];

  __device__ explicit PromptValues(const AttentionParams& p) {
    const std::uint32_t quads = (p.value_dim + 3) / 4;
#pragma unroll
    for (std::uint32_t i = 0; i < kPromptTiles; ++i) {
      const std::uint32_t unit = threadIdx.x + i * kPromptThreads;
      tiles[i] = {unit % quads * 4, unit / quads * kPromptRows, {}};
    }
  }

  /// Adds one span of values.
  template <class Stored>
  __device__ __forceinline__ void add(const AttentionParams& p, const AttentionTile& tile,
                                      const PromptShared& shared, const KvSpan& span,
                                      const std::byte* rows) {
#pragma unroll
    for (PromptTile& own : tiles) {
      if (own.query >= tile.n_queries()) continue;
      const KvRows<Stored> values = kv_rows<Stored>(p, rows, 0, own.element);
      const float* weights = shared.scores + span.first * kPromptQueries + own.query;
      const SpanRange all = read_by_all(tile, shared, own.query, span);
      const auto add_rest = [&](std::uint32_t begin, std::uint32_t end) {
#pragma unroll 1
        for (std::uint32_t i = begin; i < end; ++i)
          add_if_read(shared, span.first + i, weights + i * kPromptQueries, load_quad(values, i),
                      own);
      };
      add_rest(0, all.begin);
#pragma unroll 4
      for (std::uint32_t i = all.begin; i < all.end; ++i)
        add_weighted(weights + i * kPromptQueries, load_quad(values, i), own);
      add_rest(all.end, span.count);
    }
  }

  __device__ __forceinline__ void store(const AttentionParams& p, const AttentionTile& tile,
                                        const PromptShared& shared) const {
#pragma unroll
    for (const PromptTile& own : tiles) {
      if (own.query >= tile.n_queries()) continue;
#pragma unroll
      for (std::uint32_t q = 0; q < kPromptRows; ++q) {
        const std::uint32_t query = own.query + q;
        if (shared.reads[query] <= shared.skips[query]) continue;
        float* out = p.partials.acc + partial_of(p, tile, query) * p.value_dim + own.element;
#pragma unroll
        for (std::uint32_t j = 0; j < 4; ++j)
          if (own.element + j < p.value_dim) out[j] = own.sums[q][j];
      }
    }
  }
};

/// Computes the partial results of the tile: all keys, their weights, then all values.
template <class Stored>
__device__ __forceinline__ void attend_prompt(const AttentionParams& p, const AttentionTile& tile) {
  __shared__ std::uint64_t blocks[kPartitionBlocks];
  __shared__ std::uint32_t skips[kPromptQueries];
  __shared__ std::uint32_t reads[kPromptQueries];
  const PromptShared shared = prompt_shared(p, skips, reads);
  find_blocks(p, tile, blocks);
  __syncthreads();
  const Spans<Stored> spans = spans_of<Stored>(p, tile, blocks, shared.rows, {});
  spans.start(0);
  load_prompt_queries(p, tile, shared);
  const std::uint32_t n = spans.per_plane();
  for (std::uint32_t i = 0; i < n; ++i) {
    spans.wait_for(i);
    score_prompt<Stored>(p, shared, spans.at(i), spans.buffer(i));
  }
  __syncthreads();
  weigh_prompt(p, tile, shared);
  PromptValues values(p);
  for (std::uint32_t i = n; i < 2 * n; ++i) {
    spans.wait_for(i);
    values.add<Stored>(p, tile, shared, spans.at(i), spans.buffer(i));
  }
  values.store(p, tile, shared);
}

}  // namespace leasehold::device
