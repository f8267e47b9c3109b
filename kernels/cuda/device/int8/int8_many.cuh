/// Many rows of x on sm_90a: a block multiplies eight groups, a warp each, with all its columns,
/// with wgmma (int8_many_products.cuh). All weights and elements of x pass through two stages in
/// shared memory, which the block fills one unit ahead.
///
/// Threads copy x by 16 bytes: an expert's or a selection's rows are anywhere, and neighbouring
/// columns of a core matrix are 16 bytes apart, which no bulk copy of a row arranges.
///
/// Totals of chunks are in shared memory, because the sums of a block and of a chunk fill the
/// registers. They change only at the end of a chunk.
///
/// Bound by: for 128 columns of a type with digits, the tensor cores and the warps' instructions
/// take about as long (kernels/MEASUREMENTS.md).
#pragma once

#include <type_traits>

#include "kernels/cuda/device/int8/int8_chunk_ring.cuh"
#include "kernels/cuda/device/int8/int8_chunk_sums.cuh"
#include "kernels/cuda/device/int8/int8_many_products.cuh"

namespace leasehold::device {

template <TensorType kType, std::uint32_t kColumns_>
struct Int8Many {
  using Shape = GroupShape<kType>;
  static constexpr std::uint32_t kColumns = kColumns_;
  static constexpr Int8ManyStage kStage = int8_many_stage(kType, kColumns);
  static constexpr std::uint32_t kPieceStride = kStage.piece_stride();
  static constexpr std::uint32_t kWeightsAt = kStage.weights_at();
  static constexpr std::uint32_t kScalesAt = kStage.scales_at();
  static constexpr std::uint32_t kStripsAt = kStage.strips_at();
  static constexpr std::uint32_t kStageBytes = kStage.stage_bytes();
  static constexpr std::uint32_t kGroups = kInt8ManyGroups;
  static constexpr std::uint32_t kThreads = kGroups * kWarp;
  using Products = std::conditional_t<Shape::kHasSubBlocks, Int8DigitProducts<kType, kColumns>,
                                      Int8PlainProducts<kType, kColumns>>;
  using Sums = typename Products::Sums;
  using Chunks = ChunkSums<kColumns, kGroups * kGroupRows>;

  const Int8MatmulParams& p;
  const ColumnList& list;
  const std::byte* weights;  ///< The matrix.
  std::uint32_t first_group;
  std::uint32_t n_groups;
  std::uint32_t n_blocks;  ///< Blocks of a row.
  ChunkBlocks blocks;      ///< Those that this block multiplies.

  __device__ __forceinline__ std::size_t first_block(std::uint32_t column) const {
    return first_block_of_column<kType>(p.x, list, column);
  }

  /// A warp copies the weights of its group.
  __device__ __forceinline__ void copy_weights(std::uint32_t first, std::uint32_t n,
                                               std::byte* to) const {
    const std::uint32_t group = first_group + warp_of_block();
    if (group >= n_groups) return;
    const std::uint32_t own = lane_of_warp() * kCopyBytes;
    const std::byte* const from =
        weights + group * p.group_bytes + std::size_t{first} * Shape::kBytes + own;
#pragma unroll
    for (std::uint32_t at = 0; at < kStage.weight_bytes; at += kWarp * kCopyBytes)
      if (own + at < n * Shape::kBytes)
        copy_async_16(to + warp_of_block() * kStage.weight_bytes + own + at, from + at);
  }

  /// Four neighbouring threads copy 64 bytes of a column.
  __device__ __forceinline__ void copy_x(std::uint32_t first, std::uint32_t n,
                                         std::byte* to) const {
    constexpr std::uint32_t kFours = kThreads / 4;
    constexpr std::uint32_t kAtOnce = kFours < kColumns ? kFours : kColumns;  // columns
    const std::uint32_t four = threadIdx.x / 4;
#pragma unroll
    for (std::uint32_t column = four % kAtOnce; column < kColumns; column += kAtOnce) {
      if (column >= list.count) return;
      const std::int8_t* const from =
          p.x.q + std::size_t{list.source[column]} * p.x.n_in + first * Shape::kElements;
#pragma unroll
      for (std::uint32_t i = four / kAtOnce; i < kStage.x_pieces / 4; i += kFours / kAtOnce) {
        const std::uint32_t piece = i * 4 + threadIdx.x % 4;
        if (piece * kPiece < n * Shape::kElements)
          copy_async_16(to + piece * kPieceStride + column * kPiece, from + piece * kPiece);
      }
    }
  }

  /// Two threads copy the split sums of a column of a block of 256.
  __device__ __forceinline__ void copy_sums(std::uint32_t first, std::byte* to) const {
    const std::uint32_t column = threadIdx.x / 2;
    if (column < kColumns && column < list.count)
      copy_async_16(to + threadIdx.x % 2 * kPieceStride + column * kPiece,
                    p.x.split_sums((first_block(column) + first) * 4) + threadIdx.x % 2 * 2);
  }

  /// Copies a word of each block of each column. `from` has one for every block of every row.
  template <class Word>
  __device__ __forceinline__ void copy_words(const Word* from, std::uint32_t first, std::uint32_t n,
                                             std::byte* to) const {
    const std::uint32_t column = threadIdx.x % kColumns;
    if (column >= list.count) return;
    for (std::uint32_t i = threadIdx.x / kColumns; i < n; i += kThreads / kColumns)
      copy_async_4(to + (i * kColumns + column) * sizeof(Word),
                   from + first_block(column) + first + i);
  }

  /// Starts to copy the unit from block `first` on, if there is one. The addresses are computed for
  /// each unit, because the products need the registers.
  __device__ __forceinline__ void start(std::uint32_t first, std::byte* to) const {
    if (first < blocks.end) {
      const std::uint32_t left = blocks.end - first;
      const std::uint32_t n = left < kStage.blocks ? left : kStage.blocks;
      copy_weights(first, n, to + kWeightsAt);
      copy_x(first, n, to);
      if constexpr (kStage.sum_pieces != 0) copy_sums(first, to + kStage.x_pieces * kPieceStride);
      copy_words(p.x.scales, first, n, to + kScalesAt);
      if constexpr (kStage.has_strips) copy_words(strips_of(p.x), first, n, to + kStripsAt);
    }
    copy_async_commit();
  }

  /// The thread's total of its sum i.
  __device__ __forceinline__ static float& total(std::uint32_t i) {
    return reinterpret_cast<float*>(dynamic_shared() + 2 * kStageBytes)[i * kThreads + threadIdx.x];
  }
  /// For ChunkSums.
  template <class Visit>
  __device__ __forceinline__ static void for_each(Visit&& visit) {
#pragma unroll 4
    for (std::uint32_t i = 0; i < Products::kSums; ++i)
      visit(total(i), i / 4 * 8 + lane_of_warp() % 4 * 2 + i % 2,
            warp_of_block() * kGroupRows + lane_of_warp() / 4 + i % 4 / 2 * 8);
  }
  __device__ __forceinline__ static void fold(Sums& sums, bool is_first) {
#pragma unroll
    for (std::uint32_t i = 0; i < Products::kSums; ++i) {
      total(i) = is_first ? sums[i] : total(i) + sums[i];
      sums[i] = 0.0F;
    }
  }

  __device__ __forceinline__ static StagedUnit staged(const std::byte* stage, std::uint32_t n) {
    return {.weights = stage + kWeightsAt + warp_of_block() * kStage.weight_bytes,
            .x = stage,
            .scales = reinterpret_cast<const float*>(stage + kScalesAt),
            .strips = reinterpret_cast<const std::int32_t*>(stage + kStripsAt),
            .n_blocks = n};
  }

  __device__ __forceinline__ void multiply(const Chunks& chunks) const {
    const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
    std::uint32_t chunk = blockIdx.z * Chunks::chunks_of_block();
    std::uint32_t in_chunk = 0;
    Sums sums = {};
    const auto end_chunk = [&] {
      chunks.end_chunk(
          chunk++, [&](bool is_first) { fold(sums, is_first); },
          [](auto&& visit) { for_each(visit); });
      in_chunk = 0;
    };
    std::byte* const stages = dynamic_shared();
    std::uint32_t stage = 0;
    start(blocks.begin, stages);
#pragma unroll 1
    for (std::uint32_t first = blocks.begin; first < blocks.end; first += kStage.blocks) {
      copy_async_wait<0>();
      fence_proxy_async();
      __syncthreads();  // the unit has arrived, and all warps are done with the previous one
      start(first + kStage.blocks, stages + (kStageBytes - stage));
      const std::uint32_t left = blocks.end - first;
      Products::add(sums, staged(stages + stage, left < kStage.blocks ? left : kStage.blocks), [&] {
        if (++in_chunk == per_chunk) end_chunk();
      });
      stage = kStageBytes - stage;
    }
    if (in_chunk > 0) end_chunk();
    copy_async_wait<0>();
  }

  __device__ __forceinline__ void run(const MatmulSegment& to) const {
    const Chunks chunks{p, list, n_blocks};
    multiply(chunks);
    if (!chunks.complete([](auto&& visit) { for_each(visit); })) return;
    for_each([&](float total, std::uint32_t column, std::uint32_t row) {
      store_product(p, to, list, column, first_group * kGroupRows + row, total);
    });
  }
};

}  // namespace leasehold::device
