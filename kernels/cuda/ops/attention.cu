/// Attention over one partition, with the reference's bits (kernels/numerics/attention_order.hpp),
/// and the merge of partitions.
#include "kernels/cuda/device/attention_values.cuh"
#include "kernels/cuda/device/tiles.cuh"

namespace leasehold::device {

/// Copies the spans of a partition to shared memory: all keys, then all values.
template <class Stored>
struct Spans {
  const AttentionParams& p;
  const std::uint64_t* blocks;  ///< [kPartitionBlocks]
  std::byte* buffers;           ///< Two buffers of buffer_bytes each.
  std::uint32_t buffer_bytes;
  std::uint32_t begin;  ///< The first position to copy, at the start of a block.
  std::uint32_t end;

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
  }
};

/// One block per tile: all keys of the partition, their weights, then all values. Copies overlap
/// with computing. A block has kTile queries, a thread kQueriesPerThread of them. With kByFour,
/// four threads compute one key of the only query. A value has up to kPairSpans spans.
template <class Stored, int kTile, int kQueriesPerThread, bool kByFour = false,
          std::uint32_t kPairSpans = kSpans>
__device__ __forceinline__ void attend(const AttentionParams& p) {
  __shared__ std::uint64_t blocks[kPartitionBlocks];
  const AttentionTile tile = tile_of_block(p);
  if (tile.n_rows == 0) return;
  if (!block_row_is_live(p.gate, tile.row)) return;
  const AttentionShared shared = shared_of<kTile>(p);
  find_blocks(p, tile, blocks);
  __syncthreads();
  const Spans<Stored> spans{p,
                            blocks,
                            shared.rows,
                            p.tile_positions * kv_position_bytes(p.head_dim, kStoredAs<Stored>),
                            tile.first_skips / KvLayout::kBlockTokens * KvLayout::kBlockTokens,
                            tile.last_reads};
  spans.start(0);
  load_queries(p, tile, kTile, shared.queries);
  const std::uint32_t n = spans.per_plane();
  for (std::uint32_t i = 0; i < n; ++i) {
    spans.wait_for(i);
    if constexpr (kByFour) {
      score_keys_by_four<Stored>(p, shared, spans.at(i), spans.buffer(i));
    } else {
      score_keys<Stored, kTile, kQueriesPerThread>(p, shared, tile.n_queries(), spans.at(i),
                                                   spans.buffer(i));
    }
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

/// Grid: partitions, head tiles, rows. Variants for one query and for up to four or eight. The
/// second variant for eight uses fewer threads, each with more work and fewer reads, for grids with
/// enough blocks. The second variant for one query uses more threads, for grids with few blocks.
LEASEHOLD_KERNEL(lh_attention_f16_q1_wide, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::uint16_t, 1, 1, true>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q1_wide, AttentionParams, 4 * kThreadsPerQuery) {
  attend<float, 1, 1, true>(p);
}
LEASEHOLD_KERNEL(lh_attention_f16_q1, AttentionParams, 1 * kThreadsPerQuery) {
  attend<std::uint16_t, 1, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_f16_q4, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::uint16_t, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_f16_q8, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::uint16_t, 8, 2>(p);
}
LEASEHOLD_KERNEL(lh_attention_f16_q8_rows, AttentionParams, 2 * kThreadsPerQuery) {
  attend<std::uint16_t, 8, 4>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q1, AttentionParams, 1 * kThreadsPerQuery) {
  attend<float, 1, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q4, AttentionParams, 4 * kThreadsPerQuery) {
  attend<float, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q8, AttentionParams, 4 * kThreadsPerQuery) {
  attend<float, 8, 2>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q8_rows, AttentionParams, 2 * kThreadsPerQuery) {
  attend<float, 8, 4>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q1_wide, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::int8_t, 1, 1, true>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q1, AttentionParams, 1 * kThreadsPerQuery) {
  attend<std::int8_t, 1, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q4, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::int8_t, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q8, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::int8_t, 8, 2>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q8_rows, AttentionParams, 2 * kThreadsPerQuery) {
  attend<std::int8_t, 8, 4>(p);
}

/// The kernels of wide heads, for any number of queries.
LEASEHOLD_KERNEL(lh_attention_f16_q8_heads, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::uint16_t, 8, 2, false, kWideSpans>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q8_heads, AttentionParams, 4 * kThreadsPerQuery) {
  attend<float, 8, 2, false, kWideSpans>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q8_heads, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::int8_t, 8, 2, false, kWideSpans>(p);
}

/// The elements that a thread merges: up to four neighbours of one row and head.
struct MergedElements {
  std::uint32_t d;
  float out[4];
  float sum;
};

__device__ __forceinline__ void load_partial(const float* acc, std::uint32_t left, bool is_aligned,
                                             float (&out)[4]) {
  if (is_aligned) {
    const float4 all = *reinterpret_cast<const float4*>(acc);
    out[0] = all.x;
    out[1] = all.y;
    out[2] = all.z;
    out[3] = all.w;
    return;
  }
  for (std::uint32_t j = 0; j < 4; ++j) out[j] = j < left ? acc[j] : 0.0F;
}

/// Merges `count` more partitions, whose weights and sums the block has computed.
__device__ __forceinline__ void merge_chunk(const float* acc, const float2* weights,
                                            std::uint32_t count, std::uint32_t value_dim,
                                            MergedElements& merged) {
  const bool is_aligned = value_dim % 4 == 0;
#pragma unroll 4
  for (std::uint32_t i = 0; i < count; ++i) {
    float part[4];
    load_partial(acc + std::size_t{i} * value_dim + merged.d, value_dim - merged.d, is_aligned,
                 part);
    const float2 weight_and_sum = weights[i];
    merged.sum = fmaf(weight_and_sum.y, weight_and_sum.x, merged.sum);
    for (std::uint32_t j = 0; j < 4; ++j)
      merged.out[j] = fmaf(part[j], weight_and_sum.x, merged.out[j]);
  }
}

/// The heads of a row that a block merges, 32 partitions at a time: each lane computes the weight
/// of one partition.
struct MergedHeads {
  std::size_t first;  ///< Index of the row and first head in the partial results.
  std::uint32_t first_head;
  std::uint32_t n_heads;
  PartitionRange partitions;

  /// The index of partition `i` of the row's own, of a head of the block.
  __device__ std::size_t partial(const AttentionMergeParams& p, std::uint32_t head,
                                 std::uint32_t i) const {
    return (first + head) * p.partials.n_partitions + partitions.first + i;
  }
  __device__ float sink(const AttentionMergeParams& p, std::uint32_t head) const {
    return p.sinks != nullptr ? p.sinks[first_head + head] : __uint_as_float(0xff800000);
  }
};

__device__ __forceinline__ void find_maxima(const AttentionMergeParams& p, const MergedHeads& heads,
                                            float* maxima) {
  for (std::uint32_t head = warp_of_block(); head < heads.n_heads; head += blockDim.x / kWarp) {
    const float* max_sum = p.partials.max_sum + 2 * heads.partial(p, head, 0);
    float max = heads.sink(p, head);
    for (std::uint32_t i = lane_of_warp(); i < heads.partitions.count; i += kWarp)
      max = max_sum[2 * i] > max ? max_sum[2 * i] : max;
    max = warp_max(max);
    if (lane_of_warp() == 0) maxima[head] = max;
  }
}

__device__ __forceinline__ void find_weights(const AttentionMergeParams& p,
                                             const MergedHeads& heads, std::uint32_t first,
                                             const float* maxima, float2 (*weights)[kWarp]) {
  const std::uint32_t i = first + lane_of_warp();
  if (i >= heads.partitions.count) return;
  for (std::uint32_t head = warp_of_block(); head < heads.n_heads; head += blockDim.x / kWarp) {
    const float* max_sum = p.partials.max_sum + 2 * heads.partial(p, head, i);
    weights[head][lane_of_warp()] = {exp_f32(max_sum[0] - maxima[head]), max_sum[1]};
  }
}

/// Grid: groups of a row's heads (one group if tiles are wanted), rows.
LEASEHOLD_KERNEL(lh_attention_merge, AttentionMergeParams, kMaxMergeThreads) {
  __shared__ std::uint32_t scratch[32];
  __shared__ float maxima[kMaxMergedHeads];
  __shared__ float2 weights[kMaxMergedHeads][kWarp];
  const std::uint32_t row = p.partials.first_row + blockIdx.y;
  if (row >= row_count(p.gate)) return;
  if (!block_row_is_live(p.gate, row)) return;
  const std::uint32_t quads = (p.value_dim + 3) / 4;
  const std::uint32_t first_head = blockIdx.x * p.heads_per_block;
  const std::uint32_t left = p.n_heads - first_head;
  const MergedHeads heads{std::size_t{blockIdx.y} * p.n_heads + first_head, first_head,
                          left < p.heads_per_block ? left : p.heads_per_block,
                          partitions_read(p.gate.rows[row].position, p.window)};
  float* out = p.out + std::size_t{row} * p.n_heads * p.value_dim;
  std::uint32_t largest = 0;
  find_maxima(p, heads, maxima);
  for (std::uint32_t base = 0; base < heads.n_heads * quads; base += blockDim.x) {
    const std::uint32_t unit = base + threadIdx.x;
    const std::uint32_t head = unit / quads;
    const bool has_work = head < heads.n_heads;
    MergedElements merged{unit % quads * 4, {}, 0.0F};
    for (std::uint32_t i = 0; i < heads.partitions.count; i += kWarp) {
      const std::uint32_t behind = heads.partitions.count - i;
      __syncthreads();
      find_weights(p, heads, i, maxima, weights);
      __syncthreads();
      if (!has_work) continue;
      if (i == 0) merged.sum = exp_f32(heads.sink(p, head) - maxima[head]);
      merge_chunk(p.partials.acc + heads.partial(p, head, i) * p.value_dim, weights[head],
                  behind < kWarp ? behind : kWarp, p.value_dim, merged);
    }
    for (std::uint32_t j = 0; has_work && j < 4 && merged.d + j < p.value_dim; ++j) {
      const float value = merged.out[j] / merged.sum;
      out[(first_head + head) * p.value_dim + merged.d + j] = value;
      largest = largest > magnitude_bits(value) ? largest : magnitude_bits(value);
    }
  }
  if (p.tiles.halves != nullptr) store_tile_row(p.tiles, row, out, block_max(largest, scratch));
}

}  // namespace leasehold::device
