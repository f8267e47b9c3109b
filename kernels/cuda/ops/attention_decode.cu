/// Attention of a decode step in one launch, with the reference's bits: the heads of the rows, the
/// append, partitions, their merge, and the form that the next matmul reads.
#include "kernels/cuda/device/attention/attention_merge.cuh"
#include "kernels/cuda/device/attention/query_partition.cuh"
#include "kernels/cuda/device/int8/int8_rows.cuh"

namespace leasehold::device {

/// Fills the block's queries, and the newest key and value if the block reads them. The first tile
/// of a kv head appends them; the others read what they prepare themselves.
template <int kTile>
__device__ __forceinline__ void prepare_tile(const DecodeAttentionParams& p,
                                             const AttentionTile& tile,
                                             const AttentionShared& shared, bool has_newest) {
  const std::uint32_t head_dim = p.attention.head_dim;
  const std::uint32_t width = 8 * octets(head_dim);
  load_queries(p.attention, tile, kTile, shared.queries);
  const std::size_t at = (std::size_t{tile.row} * p.heads.n_kv_heads + tile.kv_head) * head_dim;
  for (std::uint32_t d = threadIdx.x; has_newest && d < head_dim; d += blockDim.x) {
    shared.newest[d] = p.heads.k[at + d];
    shared.newest[width + d] = p.heads.v[at + d];
  }
  __syncthreads();
  const std::uint32_t n_heads = tile.n_heads + (has_newest ? 2 : 0);
  for (std::uint32_t i = warp_of_block(); i < n_heads; i += blockDim.x / kWarp) {
    if (i < tile.n_heads) {
      prepare_query(p.heads, tile.row, shared.queries + i * width);
      continue;
    }
    const std::uint32_t plane = i - tile.n_heads;
    float* const head = shared.newest + plane * width;
    prepare_stored(p.heads, tile.row, plane, head);
    if (blockIdx.y % p.attention.tiles_per_kv_head == 0)
      append_head(p.heads, tile.row, plane, tile.kv_head, head);
  }
}

template <class Stored, int kTile, int kQueriesPerThread>
__device__ __forceinline__ void score_tile(const DecodeAttentionParams& p,
                                           const AttentionTile& tile) {
  const AttentionShared shared = shared_of<kTile, 2>(p.attention);
  const std::uint32_t position = p.attention.gate.rows[tile.row].position;
  const bool has_newest =
      p.heads.n_kv_heads > 0 && tile.partition == position / kPartitionPositions;
  const NewestRows newest{has_newest ? shared.newest : nullptr, position % kPartitionPositions};
  const auto fill = [&] { prepare_tile<kTile>(p, tile, shared, has_newest); };
  if constexpr (kTile == 1)
    attend_query<Stored>(p.attention, tile, shared, newest, fill);
  else
    attend_partition<Stored, kTile, kQueriesPerThread, kSpans>(p.attention, tile, shared, newest,
                                                               fill);
}

/// Run by the row's last block: stores the row, or zeros if a block found it dead.
__device__ __forceinline__ void finish_row(const DecodeAttentionParams& p, std::uint32_t row,
                                           PartitionRange partitions, bool is_dead) {
  __shared__ std::uint32_t scratch[32];
  const AttentionMergeParams& merge = p.merge;
  const std::uint32_t width = merge.n_heads * merge.value_dim;
  float* const out = merge.out + std::size_t{row} * width;
  auto* const weights = reinterpret_cast<float2(*)[kWarp]>(dynamic_shared());
  std::uint32_t largest = 0;
  if (is_dead) {
    for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) out[i] = 0.0F;
  } else {
    const MergedHeads heads{std::size_t{row} * merge.n_heads, 0, merge.n_heads, partitions};
    largest = merge_heads(merge, heads,
                          {weights, reinterpret_cast<float*>(weights + merge.n_heads)}, out);
  }
  largest = block_max(largest, scratch);  // a barrier, too
  if (merge.tiles.halves != nullptr) store_tile_row(merge.tiles, row, out, largest);
  if (p.rounded.q != nullptr) round_whole_row(p.rounded, row, out);
}

/// A block whose row is dead touches none of the row's memory, but arrives, so that counters return
/// to zero. Blocks of partitions that the row does not read do not arrive.
template <class Stored, int kTile, int kQueriesPerThread>
__device__ __forceinline__ void attend_row(const DecodeAttentionParams& p) {
  const AttentionTile tile = tile_of_block(p.attention);
  if (tile.n_rows == 0) return;
  const RowState state = block_row_state(p.attention.gate, tile.row);
  if (state == RowState::Stopped) return;
  if (state == RowState::Live) score_tile<Stored, kTile, kQueriesPerThread>(p, tile);
  const PartitionRange partitions =
      partitions_read(p.attention.gate.rows[tile.row].position, p.attention.window);
  const Arrival arrival =
      arrive(&p.counters[tile.row], partitions.count * gridDim.y, state == RowState::Dead);
  if (arrival.is_last) finish_row(p, tile.row, partitions, arrival.has_flag);
}

/// Grid: partitions, head tiles, rows, like the kernels of partitions.
LEASEHOLD_KERNEL_RESIDENT(lh_attention_decode_f16_q1, DecodeAttentionParams, kQueryThreads, 3) {
  attend_row<std::uint16_t, 1, 1>(p);
}
LEASEHOLD_KERNEL_RESIDENT(lh_attention_decode_f32_q1, DecodeAttentionParams, kQueryThreads, 3) {
  attend_row<float, 1, 1>(p);
}
LEASEHOLD_KERNEL_RESIDENT(lh_attention_decode_q8_0_q1, DecodeAttentionParams, kQueryThreads, 3) {
  attend_row<std::int8_t, 1, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_decode_f16_q4, DecodeAttentionParams, 4 * kThreadsPerQuery) {
  attend_row<std::uint16_t, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_decode_f32_q4, DecodeAttentionParams, 4 * kThreadsPerQuery) {
  attend_row<float, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_decode_q8_0_q4, DecodeAttentionParams, 4 * kThreadsPerQuery) {
  attend_row<std::int8_t, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_decode_f16_q8, DecodeAttentionParams, 4 * kThreadsPerQuery) {
  attend_row<std::uint16_t, 8, 2>(p);
}
LEASEHOLD_KERNEL(lh_attention_decode_f32_q8, DecodeAttentionParams, 4 * kThreadsPerQuery) {
  attend_row<float, 8, 2>(p);
}
LEASEHOLD_KERNEL(lh_attention_decode_q8_0_q8, DecodeAttentionParams, 4 * kThreadsPerQuery) {
  attend_row<std::int8_t, 8, 2>(p);
}

}  // namespace leasehold::device
