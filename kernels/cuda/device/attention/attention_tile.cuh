/// One partition of attention for a few queries that share their keys: the work of a block.
///
/// The queries of a tile are heads of one kv head, for neighbouring rows of one sequence. Which
/// rows share a tile does not affect the results.
#pragma once

#include "kernels/cuda/device/attention_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"
#include "kernels/numerics/attention_order.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kPartitionBlocks = kPartitionPositions / KvLayout::kBlockTokens;

struct AttentionTile {
  std::uint32_t row;  ///< The first row; the others follow.
  std::uint32_t n_rows;
  std::uint32_t head;  ///< Index of the first head among all heads.
  std::uint32_t n_heads;
  std::uint32_t kv_head;
  std::uint32_t partition;
  std::uint32_t first_reads;  ///< Positions of the partition that the first row reads; at most 256.
  std::uint32_t last_reads;   ///< Positions that the last row reads.
  /// Positions of the partition before the window of the first row, and of the last row.
  std::uint32_t first_skips;
  std::uint32_t last_skips;

  __device__ std::uint32_t n_queries() const { return n_rows * n_heads; }
};

/// The positions of the partition that a row at `position` reads.
__device__ __forceinline__ std::uint32_t positions_read(std::uint32_t position,
                                                        std::uint32_t partition) {
  const std::uint32_t begin = partition * kPartitionPositions;
  if (position < begin) return 0;
  const std::uint32_t n = position + 1 - begin;
  return n < kPartitionPositions ? n : kPartitionPositions;
}

/// Rows of a step.
struct RowSpan {
  std::uint32_t first;
  std::uint32_t count;
};

/// The number of bits below the lowest zero.
__device__ __forceinline__ std::uint32_t trailing_ones(std::uint32_t bits) {
  return static_cast<std::uint32_t>(__popc(bits & ~(bits + 1)));
}

/// The rows of the block's tile; none if the launch has fewer tiles. A tile begins at every
/// multiple of rows_per_tile, at most 32, and at every change of sequence. The whole warp calls it.
__device__ __forceinline__ RowSpan rows_of_block(const AttentionParams& p) {
  const std::uint32_t begin = p.partials.first_row;
  const std::uint32_t of_step = row_count(p.gate) > begin ? row_count(p.gate) - begin : 0;
  const std::uint32_t n = of_step < p.partials.n_rows ? of_step : p.partials.n_rows;
  const std::uint32_t tile = blockIdx.z;
  if (p.rows_per_tile == 1) return {begin + tile, tile < n ? 1u : 0u};
  const RowRef* rows = p.gate.rows + begin;
  std::uint32_t found = 0;
  for (std::uint32_t base = 0; base < n; base += kWarp) {
    const std::uint32_t row = base + lane_of_warp();
    const bool starts =
        row < n && (row % p.rows_per_tile == 0 || rows[row].sequence != rows[row - 1].sequence);
    std::uint32_t mask = __ballot_sync(kAllLanes, starts);
    const auto here = static_cast<std::uint32_t>(__popc(mask));
    if (tile >= found + here) {
      found += here;
      continue;
    }
    for (; found < tile; ++found) mask &= mask - 1;
    const std::uint32_t first = base + trailing_ones(~mask);
    const std::uint32_t most = p.rows_per_tile - first % p.rows_per_tile;
    const std::uint32_t other = first + lane_of_warp();
    const bool shares =
        lane_of_warp() < most && other < n && rows[other].sequence == rows[first].sequence;
    return {begin + first, trailing_ones(__ballot_sync(kAllLanes, shares))};
  }
  return {begin, 0};
}

/// The number of positions that query i of the tile reads. Query i is head i % n_heads of row i /
/// n_heads.
__device__ __forceinline__ std::uint32_t query_reads(const AttentionParams& p,
                                                     const AttentionTile& tile, std::uint32_t i) {
  if (i >= tile.n_queries()) return 0;
  const std::uint32_t position = p.gate.rows[tile.row].position + i / tile.n_heads;
  return positions_read(position, tile.partition);
}
/// The positions of the partition before the window of query i. The query reads none of the
/// partition if they are as many as query_reads, or more.
__device__ __forceinline__ std::uint32_t query_skips(const AttentionParams& p,
                                                     const AttentionTile& tile, std::uint32_t i) {
  const std::uint32_t position = p.gate.rows[tile.row].position + i / tile.n_heads;
  return positions_skipped(position, p.window, tile.partition);
}
__device__ __forceinline__ const float* query_of(const AttentionParams& p,
                                                 const AttentionTile& tile, std::uint32_t i) {
  const std::size_t row = tile.row + i / tile.n_heads;
  return p.q + (row * p.n_heads + tile.head + i % tile.n_heads) * p.head_dim;
}
/// The index of the query's partial result.
__device__ __forceinline__ std::size_t partial_of(const AttentionParams& p,
                                                  const AttentionTile& tile, std::uint32_t i) {
  const std::size_t row = tile.row + i / tile.n_heads - p.partials.first_row;
  return (row * p.n_heads + tile.head + i % tile.n_heads) * p.partials.n_partitions +
         tile.partition;
}

/// This block's tile, in a grid of partitions, head tiles and tiles of rows. A tile without rows
/// needs no work.
__device__ __forceinline__ AttentionTile tile_of_block(const AttentionParams& p) {
  AttentionTile tile{};
  tile.partition = blockIdx.x;
  const auto [row, n_rows] = rows_of_block(p);
  tile.row = row;
  if (n_rows == 0) return tile;
  const std::uint32_t position = p.gate.rows[tile.row].position;
  tile.last_reads = positions_read(position + n_rows - 1, tile.partition);
  tile.first_reads = positions_read(position, tile.partition);
  tile.first_skips = positions_skipped(position, p.window, tile.partition);
  tile.last_skips = positions_skipped(position + n_rows - 1, p.window, tile.partition);
  if (tile.last_reads == 0 || tile.first_skips >= kPartitionPositions) return tile;
  const std::uint32_t group = p.n_heads / p.n_kv_heads;
  const std::uint32_t in_group = blockIdx.y % p.tiles_per_kv_head * p.heads_per_tile;
  const std::uint32_t left = group - in_group;
  tile.kv_head = blockIdx.y / p.tiles_per_kv_head;
  tile.head = tile.kv_head * group + in_group;
  tile.n_heads = left < p.heads_per_tile ? left : p.heads_per_tile;
  tile.n_rows = n_rows;
  return tile;
}

/// Finds the keys of the kv head in each block of the partition; 0 for blocks that no row reads.
__device__ __forceinline__ void find_blocks(const AttentionParams& p, const AttentionTile& tile,
                                            std::uint64_t (&blocks)[kPartitionBlocks]) {
  const std::uint32_t i = threadIdx.x;
  if (i >= kPartitionBlocks) return;
  const std::uint32_t sequence = p.gate.rows[tile.row].sequence;
  const std::uint32_t first = p.kv.tables.first[sequence] + tile.partition * kPartitionBlocks;
  const bool is_read = i * KvLayout::kBlockTokens < tile.last_reads &&
                       (i + 1) * KvLayout::kBlockTokens > tile.first_skips;
  blocks[i] = is_read ? p.kv.tables.addresses[first + i] + p.kv.keys_offset_bytes +
                            std::uint64_t{tile.kv_head} * p.kv.head_bytes
                      : 0;
}

/// Copies the tile's queries to `queries`, [most, 8 · octets]. Missing queries and elements are
/// zero.
__device__ __forceinline__ void load_queries(const AttentionParams& p, const AttentionTile& tile,
                                             std::uint32_t most, float* queries) {
  const std::uint32_t width = 8 * octets(p.head_dim);
  for (std::uint32_t i = 0; i < most; ++i)
    for (std::uint32_t d = threadIdx.x; d < width; d += blockDim.x)
      queries[i * width + d] =
          i < tile.n_queries() && d < p.head_dim ? query_of(p, tile, i)[d] : 0.0F;
}

}  // namespace leasehold::device
