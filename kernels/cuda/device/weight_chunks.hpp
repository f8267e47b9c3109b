/// How matmul kernels cut rows of weights into chunks for shared memory, per format, and how much
/// shared memory that takes. Pure; for both compilers. C++20-clean.
///
/// A *chunk* is 256 columns of a format with blocks of 256, otherwise 128. A row's chunk is copied
/// in whole units of 16 bytes, so its first byte is up to 15 bytes inside its *slot*.
#pragma once

#include <cstdint>

#include "kernels/cuda/device/tiles.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kCopyBytes = 16;

struct WeightChunk {
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
  std::uint32_t alignment;   ///< Largest power of two ≤ 16 that divides the block's size.
  std::uint32_t columns;     ///< Per chunk.
  std::uint32_t bytes;       ///< Per chunk of one row.
  std::uint32_t units;       ///< 16-byte copies that hold a chunk at any start.
  std::uint32_t slot_bytes;  ///< Distance between the chunks of neighbouring rows in shared memory.
};

/// A warp reads 32 bytes of 8 rows at once, four rows per wave of 128 bytes. Slots of an odd
/// multiple of 32 bytes avoid bank conflicts.
constexpr std::uint32_t slot_bytes(std::uint32_t units, bool is_single_elements) {
  std::uint32_t bytes = units * kCopyBytes;
  while (!is_single_elements && bytes % 64 != 32) bytes += kCopyBytes;
  return bytes;
}

constexpr WeightChunk weight_chunk(TensorType type) {
  const BlockShape block = block_shape(type);
  std::uint32_t alignment = kCopyBytes;
  while (block.size_bytes % alignment != 0) alignment /= 2;
  const std::uint32_t columns = block.elements == 256 ? 256 : 128;
  const std::uint32_t bytes = columns / block.elements * block.size_bytes;
  const std::uint32_t units = (bytes + kCopyBytes - alignment + kCopyBytes - 1) / kCopyBytes;
  return {.block_elements = block.elements,
          .block_bytes = block.size_bytes,
          .alignment = alignment,
          .columns = columns,
          .bytes = bytes,
          .units = units,
          .slot_bytes = slot_bytes(units, block.elements == 1)};
}

/// weight_chunk() as a constant, for device code.
template <TensorType kType>
inline constexpr WeightChunk kWeightChunk = weight_chunk(kType);

/// This list precedes the ring of chunks: the rows of x that a block reads, and the rows it writes.
struct ColumnList {
  static constexpr std::uint32_t kMaxColumns = 128;
  std::uint32_t source[kMaxColumns];  ///< Rows in the tiles.
  std::uint32_t target[kMaxColumns];  ///< Rows of the result.
  std::uint32_t count;
  std::uint32_t next;  ///< Where to continue the search for the expert's items.
};
inline constexpr std::uint32_t kListBytes = (sizeof(ColumnList) + 127) / 128 * 128;

/// The ring of a kernel: `weight_rows` rows and `x_rows` rows of a chunk, `stages` times.
struct RingShape {
  std::uint32_t weight_rows;
  std::uint32_t x_rows;
  std::uint32_t stages;
};

constexpr std::uint32_t stage_bytes(const WeightChunk& chunk, const RingShape& ring) {
  return ring.x_rows * chunk.columns * 2 + ring.weight_rows * chunk.slot_bytes;
}
constexpr std::uint32_t ring_bytes(const WeightChunk& chunk, const RingShape& ring) {
  return kListBytes + ring.stages * stage_bytes(chunk, ring);
}

/// Few rows: 64 rows of weights; 1, 2, 4 or 8 tiles of 8 rows of x. Narrow tiles are bound by
/// memory and have more stages.
constexpr RingShape few_rows_ring(std::uint32_t tiles) {
  return {.weight_rows = 64, .x_rows = tiles * kTileRows, .stages = tiles <= 2 ? 3u : 2u};
}
/// Many rows: 128 rows of weights; 64 or 128 of x.
constexpr RingShape many_rows_ring(std::uint32_t columns) {
  return {.weight_rows = 128, .x_rows = columns, .stages = 2};
}

/// The blocks of a many-rows kernel that fit the shared memory of an SM of sm_90; at most 2.
constexpr std::uint32_t many_rows_blocks(TensorType type, std::uint32_t columns) {
  constexpr std::uint32_t kSmBytes = 228 * 1024;
  constexpr std::uint32_t kReservedBytes = 1024 + 128;  // per block, with its static part
  const std::uint32_t bytes =
      ring_bytes(weight_chunk(type), many_rows_ring(columns)) + kReservedBytes;
  return 2 * bytes <= kSmBytes ? 2 : 1;
}

}  // namespace leasehold::device
