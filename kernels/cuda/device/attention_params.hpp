/// Parameters of attention in two launches, partitions and their merge, or in one for rows of
/// different sequences. C++20-clean.
///
/// Partial results are [n_rows, n_heads, n_partitions], counted from first_row: two floats each in
/// `max_sum`, value_dim floats each in `acc`.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/device/kv_addressing.hpp"
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

/// The threads of the kernel for one query (query_partition.cuh).
inline constexpr std::uint32_t kQueryThreads = 256;
/// Threads per query of other kernels. Each handles one key, or two elements of each span of the
/// values.
inline constexpr std::uint32_t kThreadsPerQuery = 64;
inline constexpr std::uint32_t kValueSpan = 2 * kThreadsPerQuery;
/// The most spans of a value, and those of wide heads, which have kernels of their own.
inline constexpr std::uint32_t kSpans = 2;
inline constexpr std::uint32_t kWideSpans = 5;
inline constexpr std::uint32_t kMaxTileQueries = 8;
/// The register tile of prompts: the queries and threads of a block, and the queries of a thread. A
/// warp multiplies all queries of the block with kStripKeys keys.
inline constexpr std::uint32_t kPromptQueries = 32;
inline constexpr std::uint32_t kPromptThreads = 128;
inline constexpr std::uint32_t kPromptRows = 8;
inline constexpr std::uint32_t kStripKeys = 16;
/// Floats between two pairs of elements of all queries, so that four pairs of eight queries use
/// different banks.
inline constexpr std::uint32_t kPromptPairStride = 2 * kPromptQueries + 4;
inline constexpr std::uint32_t kMaxMergeThreads = 1024;
inline constexpr std::uint32_t kMaxMergedHeads = 128;  ///< Heads per block.

/// The length of a head's row in shared memory, in groups of eight; zeros pad the last group.
LEASEHOLD_HD constexpr std::uint32_t octets(std::uint32_t head_dim) {
  return (head_dim + 7) / 8;
}
/// An odd number of 16-byte words, so that rows read side by side use different banks. Heads of
/// Q8_0 have whole words.
LEASEHOLD_HD constexpr std::uint32_t kv_row_stride_bytes(std::uint32_t head_dim, KvType type) {
  const std::uint32_t words = type == KvType::Q8_0  ? octets(head_dim) / 2u
                              : type == KvType::F32 ? octets(head_dim) * 2u
                                                    : octets(head_dim);
  return (words | 1u) * 16u;
}
/// Bytes of a position's scales.
LEASEHOLD_HD constexpr std::uint32_t kv_scales_bytes(std::uint32_t head_dim, KvType type) {
  return type == KvType::Q8_0 ? head_dim / kKvScaleBlock * 2u : 0u;
}
/// Bytes of a position in a buffer: its row and its scales. Eight positions take whole 16-byte
/// words.
LEASEHOLD_HD constexpr std::uint32_t kv_position_bytes(std::uint32_t head_dim, KvType type) {
  return kv_row_stride_bytes(head_dim, type) + kv_scales_bytes(head_dim, type);
}

struct AttentionPartials {
  float* max_sum;
  float* acc;
  std::uint32_t n_partitions;  ///< Capacity per row and head.
  std::uint32_t first_row;     ///< The row of the step from which the launch counts.
  std::uint32_t n_rows;        ///< Rows of the launch; the step may have fewer.
};

struct AttentionParams {
  KernelGate gate;
  KvAddressing kv;
  AttentionPartials partials;
  const float* q;  ///< [n_rows, n_heads, head_dim]
  std::uint32_t n_heads;
  std::uint32_t n_kv_heads;
  std::uint32_t head_dim;
  std::uint32_t value_dim;  ///< Elements of a value, whose stored row has head_dim.
  /// The queries of a block: heads_per_tile heads of one kv head, for up to rows_per_tile rows of
  /// one sequence.
  std::uint32_t heads_per_tile;
  std::uint32_t tiles_per_kv_head;
  std::uint32_t rows_per_tile;
  /// Keys or values in a buffer in shared memory: 4, 8, …, 64; 32, …, 256 for one query.
  std::uint32_t tile_positions;
  std::uint32_t n_buffers;  ///< 2; 1: the values of one query overwrite its keys.
  std::uint32_t window;     ///< The most positions that a row reads; 0: all.
  float scale;
  float softcap;  ///< 0: none.
};

struct AttentionMergeParams {
  KernelGate gate;
  AttentionPartials partials;
  float* out;  ///< [n_rows, n_heads, value_dim]
  /// A second output for the next matmul; none if `halves` is null.
  TileRows tiles;
  std::uint32_t n_heads;
  std::uint32_t value_dim;
  std::uint32_t heads_per_block;  ///< All heads, if tiles are wanted.
  std::uint32_t window;           ///< See AttentionParams.
  const float* sinks;             ///< [n_heads], or null
};

/// Heads, partitions and merge in one launch, for rows of different sequences. Blocks prepare their
/// own queries, so `heads.q` does not change.
struct DecodeAttentionParams {
  AttentionParams attention;
  RopeKvAppendParams heads;
  AttentionMergeParams merge;
  Int8Rows rounded;         ///< A third output; none if `q` is null.
  std::uint32_t* counters;  ///< [rows of the grid], zero before and after.
};

/// The most partitions of a row that one block merges with all of the row's heads.
inline constexpr std::uint32_t kMaxDecodePartitions = 32;
/// Dynamic shared memory of a block that merges `n_heads` heads.
LEASEHOLD_HD constexpr std::uint32_t merge_shared_bytes(std::uint32_t n_heads) {
  return n_heads * (kMaxDecodePartitions * 2 + 1) * static_cast<std::uint32_t>(sizeof(float));
}

}  // namespace leasehold::device
