/// Attention of a block's queries over one partition: all keys, their weights, then all values,
/// with the reference's bits (kernels/numerics/attention_order.hpp). Copies overlap with computing.
///
/// Threads: the whole block calls each function.
#pragma once

#include "kernels/cuda/device/attention/attention_values.cuh"
#include "kernels/cuda/device/head_rows.cuh"

namespace leasehold::device {

/// The newest key and value of a row, if the block itself prepares them. Another block may store
/// them at the same time, so what a copy brings of them is replaced.
struct NewestRows {
  const float* heads = nullptr;  ///< Shared, [2, 8 · octets]; null: copies bring all positions.
  std::uint32_t position = 0;    ///< Relative to the partition.

  /// Replaces the newest row of a span in its buffer, if the span has it.
  template <class Stored>
  __device__ __forceinline__ void put(const AttentionParams& p, const KvSpan& span,
                                      std::byte* buffer) const {
    if (heads == nullptr || position < span.first || position >= span.first + span.count) return;
    const std::uint32_t row = position - span.first;
    if (warp_of_block() == 0) {
      auto* const elements = reinterpret_cast<Stored*>(
          buffer + row * kv_row_stride_bytes(p.head_dim, kStoredAs<Stored>));
      auto* const scales = reinterpret_cast<Half*>(buffer + scales_offset_bytes(p));
      store_head(heads + span.plane * 8 * octets(p.head_dim), p.head_dim, elements,
                 scales + row * (p.head_dim / kKvScaleBlock));
    }
    __syncthreads();
  }
};

/// Copies the spans of a partition to shared memory: all keys, then all values.
template <class Stored>
struct Spans {
  const AttentionParams& p;
  const std::uint64_t* blocks;  ///< [kPartitionBlocks]
  std::byte* buffers;           ///< Two buffers of buffer_bytes each.
  std::uint32_t buffer_bytes;
  std::uint32_t begin;  ///< The first position to copy, at the start of a block.
  std::uint32_t end;
  NewestRows newest;

  __device__ std::uint32_t per_plane() const {
    return (end - begin + p.tile_positions - 1) / p.tile_positions;
  }
  __device__ KvSpan at(std::uint32_t i) const {
    const std::uint32_t first = begin + i % per_plane() * p.tile_positions;
    const std::uint32_t left = end - first;
    return {i / per_plane(), first, left < p.tile_positions ? left : p.tile_positions};
  }
  __device__ std::byte* buffer(std::uint32_t i) const { return buffers + i % 2 * buffer_bytes; }
  __device__ void start(std::uint32_t i) const {
    if (i < 2 * per_plane()) load_kv_tile<Stored>(p, blocks, at(i), buffer(i));
    copy_async_commit();
  }
  /// Waits for span i and starts the copy of the next one, once all threads are done with the
  /// buffer that this copy overwrites.
  __device__ void wait_for(std::uint32_t i) const {
    __syncthreads();
    start(i + 1);
    copy_async_wait<1>();
    __syncthreads();
    newest.put<Stored>(p, at(i), buffer(i));
  }
};

template <class Stored>
__device__ __forceinline__ Spans<Stored> spans_of(const AttentionParams& p,
                                                  const AttentionTile& tile,
                                                  const std::uint64_t* blocks, std::byte* buffers,
                                                  const NewestRows& newest) {
  return {p,
          blocks,
          buffers,
          p.tile_positions * kv_position_bytes(p.head_dim, kStoredAs<Stored>),
          tile.first_skips / KvLayout::kBlockTokens * KvLayout::kBlockTokens,
          tile.last_reads,
          newest};
}

/// Computes the tile's partial results. A block has kTile queries, a thread kQueriesPerThread of
/// them. A value has up to kPairSpans spans. `fill_queries` fills `shared.queries`, and the newest
/// rows, while keys are copied.
template <class Stored, int kTile, int kQueriesPerThread, std::uint32_t kPairSpans,
          class FillQueries>
__device__ __forceinline__ void attend_partition(const AttentionParams& p,
                                                 const AttentionTile& tile,
                                                 const AttentionShared& shared,
                                                 const NewestRows& newest,
                                                 FillQueries&& fill_queries) {
  __shared__ std::uint64_t blocks[kPartitionBlocks];
  find_blocks(p, tile, blocks);
  __syncthreads();
  const Spans<Stored> spans = spans_of<Stored>(p, tile, blocks, shared.rows, newest);
  spans.start(0);
  fill_queries();
  const std::uint32_t n = spans.per_plane();
  for (std::uint32_t i = 0; i < n; ++i) {
    spans.wait_for(i);
    score_keys<Stored, kTile, kQueriesPerThread>(p, shared, tile.n_queries(), spans.at(i),
                                                 spans.buffer(i));
  }
  __syncthreads();
  softmax_weights(p, tile, shared.scores);
  auto sums = value_sums<kQueriesPerThread, kPairSpans>(p, tile);
  for (std::uint32_t i = n; i < 2 * n; ++i) {
    spans.wait_for(i);
    add_values<Stored>(p, tile, spans.at(i), spans.buffer(i), shared.scores, sums);
  }
  store_values(p, tile, sums);
}

}  // namespace leasehold::device
