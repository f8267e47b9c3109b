/// Attention over one partition, and the merge of partitions.
#include "kernels/cuda/device/attention/attention_merge.cuh"
#include "kernels/cuda/device/attention/attention_partition.cuh"
#include "kernels/cuda/device/attention/prompt_values.cuh"
#include "kernels/cuda/device/attention/query_partition.cuh"

namespace leasehold::device {

/// One block per tile. See attend_partition for the parameters.
template <class Stored, int kTile, int kQueriesPerThread, std::uint32_t kPairSpans = kSpans>
__device__ __forceinline__ void attend(const AttentionParams& p) {
  const AttentionTile tile = tile_of_block(p);
  if (tile.n_rows == 0) return;
  if (!block_row_is_live(p.gate, tile.row)) return;
  const AttentionShared shared = shared_of<kTile>(p);
  attend_partition<Stored, kTile, kQueriesPerThread, kPairSpans>(
      p, tile, shared, {}, [&] { load_queries(p, tile, kTile, shared.queries); });
}

template <class Stored>
__device__ __forceinline__ void attend_one(const AttentionParams& p) {
  const AttentionTile tile = tile_of_block(p);
  if (tile.n_rows == 0) return;
  if (!block_row_is_live(p.gate, tile.row)) return;
  const AttentionShared shared = shared_of<1>(p);
  attend_query<Stored>(p, tile, shared, {}, [&] { load_queries(p, tile, 1, shared.queries); });
}

/// Grid: partitions, head tiles, tiles of rows. Variants for one query and for up to four or eight.
LEASEHOLD_KERNEL_RESIDENT(lh_attention_f16_q1, AttentionParams, kQueryThreads, 3) {
  attend_one<std::uint16_t>(p);
}
LEASEHOLD_KERNEL(lh_attention_f16_q4, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::uint16_t, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_f16_q8, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::uint16_t, 8, 2>(p);
}
LEASEHOLD_KERNEL_RESIDENT(lh_attention_f32_q1, AttentionParams, kQueryThreads, 3) {
  attend_one<float>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q4, AttentionParams, 4 * kThreadsPerQuery) {
  attend<float, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q8, AttentionParams, 4 * kThreadsPerQuery) {
  attend<float, 8, 2>(p);
}
LEASEHOLD_KERNEL_RESIDENT(lh_attention_q8_0_q1, AttentionParams, kQueryThreads, 3) {
  attend_one<std::int8_t>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q4, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::int8_t, 4, 1>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q8, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::int8_t, 8, 2>(p);
}

/// The kernels of wide heads, and of prompts on cards whose shared memory cannot hold the register
/// tile.
LEASEHOLD_KERNEL(lh_attention_f16_q8_heads, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::uint16_t, 8, 2, kWideSpans>(p);
}
LEASEHOLD_KERNEL(lh_attention_f32_q8_heads, AttentionParams, 4 * kThreadsPerQuery) {
  attend<float, 8, 2, kWideSpans>(p);
}
LEASEHOLD_KERNEL(lh_attention_q8_0_q8_heads, AttentionParams, 4 * kThreadsPerQuery) {
  attend<std::int8_t, 8, 2, kWideSpans>(p);
}

template <class Stored>
__device__ __forceinline__ void attend_rows(const AttentionParams& p) {
  const AttentionTile tile = tile_of_block(p);
  if (tile.n_rows == 0) return;
  if (!block_row_is_live(p.gate, tile.row)) return;
  if (tile.n_queries() > kMaxTileQueries) return attend_prompt<Stored>(p, tile);
  const AttentionShared shared = shared_of<kMaxTileQueries>(p);
  attend_partition<Stored, kMaxTileQueries, 4, kSpans>(
      p, tile, shared, {}, [&] { load_queries(p, tile, kMaxTileQueries, shared.queries); });
}

/// The register tile of prompts. Tiles of few queries, such as the only row of another sequence,
/// are computed as those of the kernels above, by half as many threads.
LEASEHOLD_KERNEL_RESIDENT(lh_attention_f16_prompt, AttentionParams, kPromptThreads, 2) {
  attend_rows<std::uint16_t>(p);
}
LEASEHOLD_KERNEL_RESIDENT(lh_attention_f32_prompt, AttentionParams, kPromptThreads, 2) {
  attend_rows<float>(p);
}
LEASEHOLD_KERNEL_RESIDENT(lh_attention_q8_0_prompt, AttentionParams, kPromptThreads, 2) {
  attend_rows<std::int8_t>(p);
}

/// Grid: groups of a row's heads (one group if tiles are wanted), rows.
LEASEHOLD_KERNEL(lh_attention_merge, AttentionMergeParams, kMaxMergeThreads) {
  __shared__ std::uint32_t scratch[32];
  __shared__ float maxima[kMaxMergedHeads];
  __shared__ float2 weights[kMaxMergedHeads][kWarp];
  const std::uint32_t row = p.partials.first_row + blockIdx.y;
  if (row >= row_count(p.gate)) return;
  if (!block_row_is_live(p.gate, row)) return;
  const std::uint32_t first_head = blockIdx.x * p.heads_per_block;
  const std::uint32_t left = p.n_heads - first_head;
  const MergedHeads heads{std::size_t{blockIdx.y} * p.n_heads + first_head, first_head,
                          left < p.heads_per_block ? left : p.heads_per_block,
                          partitions_read(p.gate.rows[row].position, p.window)};
  float* out = p.out + std::size_t{row} * p.n_heads * p.value_dim;
  const std::uint32_t largest = merge_heads(p, heads, {weights, maxima}, out);
  if (p.tiles.halves != nullptr) store_tile_row(p.tiles, row, out, block_max(largest, scratch));
}

}  // namespace leasehold::device
