/// Attention in two launches: partitions, then their merge. C++20-clean.
///
/// Partial results are [n_rows, n_heads, n_partitions], counted from first_row: two floats each in
/// `max_sum`, head_dim of them in `acc`.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/kv_addressing.hpp"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

/// Threads that share one query's work: each has a key, or two elements of the values.
inline constexpr std::uint32_t kThreadsPerQuery = 64;
inline constexpr std::uint32_t kMaxTileQueries = 8;
inline constexpr std::uint32_t kMaxMergeThreads = 1024;
inline constexpr std::uint32_t kMaxMergedHeads = 128;  ///< By one block.

/// In shared memory a head's row is padded with zeros to whole octets.
LEASEHOLD_HD constexpr std::uint32_t octets(std::uint32_t head_dim) {
  return (head_dim + 7) / 8;
}
/// An odd number of 16-byte words, so that rows read side by side meet in no bank.
LEASEHOLD_HD constexpr std::uint32_t kv_row_stride_bytes(std::uint32_t head_dim, KvType type) {
  return (octets(head_dim) * (type == KvType::F32 ? 2u : 1u) | 1u) * 16u;
}

struct AttentionPartials {
  float* max_sum;
  float* acc;
  std::uint32_t n_partitions;  ///< Room for, of each row and head.
  std::uint32_t first_row;     ///< Of the step; grids count rows from here.
};

struct AttentionParams {
  KernelGate gate;
  KvAddressing kv;
  AttentionPartials partials;
  const float* q;  ///< [n_rows, n_heads, head_dim]
  std::uint32_t n_heads;
  std::uint32_t n_kv_heads;
  std::uint32_t head_dim;
  /// A block's queries: this many heads of one kv head, of up to that many rows of one sequence.
  std::uint32_t heads_per_tile;
  std::uint32_t tiles_per_kv_head;
  std::uint32_t rows_per_tile;
  std::uint32_t tile_positions;  ///< Keys or values that are in shared memory at a time.
  float scale;
};

struct AttentionMergeParams {
  KernelGate gate;
  AttentionPartials partials;
  float* out;  ///< [n_rows, n_heads, head_dim]
  /// The output once more, for the next matmul; none where `halves` is null.
  TileRows tiles;
  std::uint32_t n_heads;
  std::uint32_t head_dim;
  std::uint32_t heads_per_block;  ///< All of them where tiles are wanted.
};

}  // namespace leasehold::device
