/// Copies the blocks of a warp's chunk, and the part of x that they multiply, through the warp's
/// own ring in shared memory. So bytes in flight use no registers.
///
/// Threads: one warp.
#pragma once

#include "kernels/cuda/device/int8/int8_columns.cuh"

namespace leasehold::device {

/// The range of blocks of consecutive chunks.
struct ChunkBlocks {
  std::uint32_t begin, end;

  __device__ __forceinline__ ChunkBlocks(std::uint32_t n_blocks, std::uint32_t first_chunk,
                                         std::uint32_t n_chunks = 1) {
    const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
    begin = smaller(first_chunk * per_chunk, n_blocks);
    end = smaller(begin + n_chunks * per_chunk, n_blocks);
  }

 private:
  __device__ __forceinline__ static std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }
};

template <TensorType kType, std::uint32_t kColumns>
struct ChunkRing {
  using Shape = GroupShape<kType>;
  static constexpr Int8Ring kRing = int8_chunk_ring(kType, kColumns);
  static constexpr Int8Unit kUnit = kRing.unit;
  static constexpr std::uint32_t kStages = kRing.stages;
  static constexpr std::uint32_t kStageBytes = kRing.stage_bytes();
  static constexpr std::uint32_t kScalesAt = kRing.scales_at();
  static constexpr std::uint32_t kRingBytes = kRing.size_bytes();
  // Numbers of copies for one unit: of weights per lane, of x per column, and of x per lane.
  static constexpr std::uint32_t kWeightCopies =
      (kUnit.weight_bytes / kCopyBytes + kWarp - 1) / kWarp;
  static constexpr std::uint32_t kCopiesPerColumn = kUnit.x_bytes / kCopyBytes;
  static constexpr std::uint32_t kXCopies = (kColumns * kCopiesPerColumn + kWarp - 1) / kWarp;
  static_assert(kUnit.blocks * kColumns <= kWarp, "a lane copies one scale");

  std::byte* ring;
  ChunkBlocks blocks;
  const std::byte* weights_from;        ///< The source of the lane's first copy of the chunk.
  const std::int8_t* x_from[kXCopies];  ///< Null: nothing to copy.
  const float* scale_from;              ///< Null: nothing to copy.

  __device__ __forceinline__ ChunkRing(const Int8Rows& x, const ColumnList& list,
                                       const std::byte* group, std::uint32_t chunk)
      : ring(dynamic_shared() + chunk * kRingBytes), blocks(blocks_of_row<kType>(x), chunk) {
    const std::uint32_t lane = lane_of_warp();
    weights_from = group + std::size_t{blocks.begin} * Shape::kBytes + lane * kCopyBytes;
#pragma unroll
    for (std::uint32_t i = 0; i < kXCopies; ++i) {
      const std::uint32_t column = (lane + i * kWarp) / kCopiesPerColumn;
      const bool is_wanted = column < kColumns && column < list.count;
      x_from[i] = is_wanted ? x.q + std::size_t{list.source[column]} * x.n_in +
                                  blocks.begin * Shape::kElements +
                                  (lane + i * kWarp) % kCopiesPerColumn * kCopyBytes
                            : nullptr;
    }
    const std::uint32_t column = lane % kColumns;
    const bool is_wanted = lane < kUnit.blocks * kColumns && column < list.count;
    scale_from = is_wanted ? x.scales + first_block_of_column<kType>(x, list, column) +
                                 blocks.begin + lane / kColumns
                           : nullptr;
  }

  /// Starts to copy a unit of n blocks that is `first` blocks after the start of the chunk.
  __device__ __forceinline__ void copy(std::uint32_t first, std::uint32_t n, std::byte* to) const {
    const std::uint32_t lane = lane_of_warp();
    const std::uint32_t at = lane * kCopyBytes;
    const std::byte* const from = weights_from + std::size_t{first} * Shape::kBytes;
#pragma unroll
    for (std::uint32_t i = 0; i < kWeightCopies; ++i)
      if (at + i * kWarp * kCopyBytes < n * Shape::kBytes)
        copy_async_16(to + at + i * kWarp * kCopyBytes, from + i * kWarp * kCopyBytes);
#pragma unroll
    for (std::uint32_t i = 0; i < kXCopies; ++i) {
      const std::uint32_t column = (lane + i * kWarp) / kCopiesPerColumn;
      const std::uint32_t in_column = (lane + i * kWarp) % kCopiesPerColumn * kCopyBytes;
      if (x_from[i] != nullptr && in_column < n * Shape::kElements)
        copy_async_16(to + kUnit.weight_bytes + column * kUnit.column_stride + in_column,
                      x_from[i] + first * Shape::kElements);
    }
    if (scale_from != nullptr && lane / kColumns < n)
      copy_async_4(to + kScalesAt + lane * sizeof(float), scale_from + first);
  }

  /// Starts to copy the unit from block `first` on, if there is one. Whole units are copied with a
  /// constant size.
  __device__ __forceinline__ void start(std::uint32_t first, std::byte* to) const {
    const std::uint32_t count = blocks.end - blocks.begin;
    if (first + kUnit.blocks <= count) {
      copy(first, kUnit.blocks, to);
    } else if (first < count) {
      copy(first, count - first, to);
    }
    copy_async_commit();
  }

  /// Calls visit(block) for each block, in ascending order.
  template <class Visit>
  __device__ __forceinline__ void for_each(Visit&& visit) const {
    constexpr std::uint32_t kAhead = kStages - 1;
    const std::uint32_t count = blocks.end - blocks.begin;
#pragma unroll 1
    for (std::uint32_t i = 0; i < kAhead; ++i) start(i * kUnit.blocks, ring + i * kStageBytes);
    std::uint32_t stage = 0;
#pragma unroll 1
    for (std::uint32_t first = 0; first < count; first += kUnit.blocks) {
      copy_async_wait<static_cast<int>(kStages) - 2>();
      __syncwarp();  // the unit has arrived, and all lanes are done with the previous one
      const std::uint32_t previous = stage == 0 ? kAhead : stage - 1;
      start(first + kAhead * kUnit.blocks, ring + previous * kStageBytes);
      const std::byte* const unit = ring + stage * kStageBytes;
      const auto visit_block = [&](std::uint32_t i) {
        visit(StagedBlock{unit + i * Shape::kBytes,
                          unit + kUnit.weight_bytes + i * Shape::kElements, kUnit.column_stride,
                          reinterpret_cast<const float*>(unit + kScalesAt) + i * kColumns,
                          blocks.begin + first + i});
      };
      if (first + kUnit.blocks <= count) {
#pragma unroll
        for (std::uint32_t i = 0; i < kUnit.blocks; ++i) visit_block(i);
      } else {
#pragma unroll 1
        for (std::uint32_t i = 0; first + i < count; ++i) visit_block(i);
      }
      stage = stage == kAhead ? 0 : stage + 1;
    }
    copy_async_wait<0>();
  }
};

}  // namespace leasehold::device
