/// How the int8 kernels cut rows into units for shared memory, per type, and how much shared memory
/// they take. Pure; for both compilers. C++20-clean.
///
/// A *unit* is one or several blocks of a group of weights and the elements of x that they
/// multiply.
#pragma once

#include <cstdint>

#include "kernels/numerics/int8_order.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold::device {

struct Int8Unit {
  std::uint32_t blocks;
  std::uint32_t weight_bytes;
  std::uint32_t x_bytes;  ///< Bytes of one column of x.
  /// The distance between columns in shared memory: an odd multiple of the bytes that four lanes of
  /// an mma load from a column at once, so that neighbouring columns are in different banks.
  std::uint32_t column_stride;
};

/// Whether a lane of an mma multiplies pairs of neighbouring quads of x: those of formats whose
/// plane has both quads of the weights in one word.
constexpr bool int8_has_pairs(const GroupFormat& format) {
  return (format.has_sub_blocks() ? format.sub_block : format.elements) == 32 &&
         format.low_bits <= 4;
}
constexpr bool int8_has_pairs(TensorType type) {
  return int8_has_pairs(group_format(type));
}

constexpr Int8Unit int8_unit(const GroupFormat& format, std::uint32_t blocks) {
  const std::uint32_t x_bytes = blocks * format.elements;
  return {.blocks = blocks,
          .weight_bytes = blocks * format.size_bytes(),
          .x_bytes = x_bytes,
          .column_stride = x_bytes + (int8_has_pairs(format) ? 32 : 16)};
}

/// A ring of units in shared memory.
struct Int8Ring {
  Int8Unit unit;
  std::uint32_t stages;
  std::uint32_t groups;   ///< Groups of weights in a stage.
  std::uint32_t columns;  ///< Columns of x in a stage.

  /// The scales of x follow the rest: [unit.blocks][columns].
  constexpr std::uint32_t scales_at() const {
    return groups * unit.weight_bytes + columns * unit.column_stride;
  }
  constexpr std::uint32_t stage_bytes() const {
    const std::uint32_t scale_bytes = unit.blocks * columns * sizeof(float);
    return scales_at() + (scale_bytes + 15) / 16 * 16;
  }
  constexpr std::uint32_t size_bytes() const { return stages * stage_bytes(); }
};

constexpr Int8Ring int8_ring(TensorType type, std::uint32_t groups, std::uint32_t columns) {
  const GroupFormat format = group_format(type);
  const bool is_large = format.elements > kMinInt8Block;
  return {.unit = int8_unit(format, is_large ? 1 : 4),
          .stages = is_large ? 2u : 3u,
          .groups = groups,
          .columns = columns};
}

/// The ring of a warp that multiplies one chunk of one group.
constexpr Int8Ring int8_chunk_ring(TensorType type, std::uint32_t columns) {
  return int8_ring(type, 1, columns);
}

/// The groups of a block that multiplies whole rows.
inline constexpr std::uint32_t kInt8TileGroups = 4;

/// The ring of a block that multiplies whole rows of kInt8TileGroups groups.
constexpr Int8Ring int8_tile_ring(TensorType type, std::uint32_t columns) {
  return int8_ring(type, kInt8TileGroups, columns);
}

/// The groups of a block that multiplies with wgmma, one for each warp, and the elements of a row
/// that are in shared memory together.
inline constexpr std::uint32_t kInt8ManyGroups = 8;
inline constexpr std::uint32_t kInt8ManyElements = 256;
/// Elements of a column that are neighbours in shared memory: 16 bytes.
inline constexpr std::uint32_t kPiece = 16;

/// A stage in shared memory of such a block: pieces of x, [x_pieces][columns]; the split sums of x
/// likewise; the groups' weights; the scales of x, [blocks][columns]; the sums of its strips,
/// likewise.
struct Int8ManyStage {
  std::uint32_t blocks;
  std::uint32_t weight_bytes;  ///< Of a group.
  std::uint32_t x_pieces;      ///< Of a column.
  std::uint32_t sum_pieces;    ///< Of a column: 2 for minima of sub-blocks.
  bool has_strips;             ///< For minima of blocks of 32.
  std::uint32_t columns;

  /// Threads that copy four pieces of two columns at once write to different banks.
  constexpr std::uint32_t piece_stride() const { return columns * kPiece + 32; }
  constexpr std::uint32_t weights_at() const { return (x_pieces + sum_pieces) * piece_stride(); }
  constexpr std::uint32_t scales_at() const {
    return weights_at() + kInt8ManyGroups * weight_bytes;
  }
  constexpr std::uint32_t strips_at() const { return scales_at() + blocks * columns * 4; }
  constexpr std::uint32_t stage_bytes() const {
    return strips_at() + (has_strips ? blocks * columns * 4 : 0);
  }
};

constexpr Int8ManyStage int8_many_stage(TensorType type, std::uint32_t columns) {
  const GroupFormat format = group_format(type);
  const std::uint32_t blocks = kInt8ManyElements / format.elements;
  return {.blocks = blocks,
          .weight_bytes = blocks * format.size_bytes(),
          .x_pieces = kInt8ManyElements / kPiece,
          .sum_pieces = format.has_sub_blocks() && format.has_min ? 2u : 0u,
          .has_strips = !format.has_sub_blocks() && format.has_min,
          .columns = columns};
}

/// Whether the scales of sub-blocks are multiplied as digits (int8_digits.cuh): Q2_K to Q6_K. A
/// table's values times a digit would not fit a byte.
constexpr bool int8_has_digits(const GroupFormat& format) {
  return format.has_sub_blocks() && format.table == CodeTable::None;
}
/// The types for which there are kernels with wgmma, and their columns.
constexpr bool has_int8_many(TensorType type) {
  const GroupFormat format = group_format(type);
  return int8_has_digits(format) || !format.has_sub_blocks();
}
inline constexpr std::uint32_t kInt8ManyColumns[] = {32, 64, 128};

/// Their dynamic shared memory: two stages, and the totals of the results.
constexpr std::uint32_t int8_many_shared_bytes(TensorType type, std::uint32_t columns) {
  return 2 * int8_many_stage(type, columns).stage_bytes() +
         kInt8ManyGroups * kGroupRows * columns * static_cast<std::uint32_t>(sizeof(float));
}

/// The columns for which there are kernels.
inline constexpr std::uint32_t kInt8Columns[] = {1, 2, 8, 32, 64};
/// From this number of columns on, a block multiplies whole rows of several groups. Below it, a
/// warp multiplies one chunk of one group.
inline constexpr std::uint32_t kInt8TileColumns = 32;

/// The dynamic shared memory of the kernel for one of kInt8Columns.
constexpr std::uint32_t int8_shared_bytes(TensorType type, std::uint32_t columns) {
  return columns < kInt8TileColumns ? kInt8Chunks * int8_chunk_ring(type, columns).size_bytes()
                                    : int8_tile_ring(type, columns).size_bytes();
}

}  // namespace leasehold::device
