/// Multiplies a block of sixteen rows with tiles of eight columns, with mma.
///
/// Lane 4g + t has rows g and g + 8 of the group, and of each tile the sums of columns 2t and 2t +
/// 1 (the fragments of mma: simt.cuh). The lane multiplies two quads of each 32 elements, or quad t
/// of each sub-block of 16: integer sums do not depend on which elements share a step of mma. The
/// two quads are 2t and 2t + 1, which share a word of up to five bits per element; with 8 bits they
/// are t and t + 4.
///
/// Bank conflicts: eight lanes read 32 neighbouring bytes of a plane of 64. If the four t read
/// different planes, those with t >= 2 read the lower row first, so that the planes at an even
/// distance use other banks.
#pragma once

#include "kernels/cuda/device/int8/int8_chunk_ring.cuh"

namespace leasehold::device {

template <TensorType kType, std::uint32_t kTiles>
struct Int8Products {
  using Shape = GroupShape<kType>;
  using Sums = float[kTiles][4];
  /// Words of a sub-block in 2 rows.
  static constexpr std::uint32_t kWords = Shape::kSubBlock / 8;
  static constexpr std::uint32_t kQuadsOfLane = kWords / 2;
  static constexpr std::uint32_t kQuadsOfSubBlock = Shape::kSubBlock / kQuad;
  /// The distance of a lane's quads, and of the quads of neighbouring lanes.
  static constexpr bool kHasPairs = int8_has_pairs(kType);
  static constexpr std::uint32_t kQuadStep = kHasPairs ? 1 : 4;
  static constexpr std::uint32_t kLaneStep = kHasPairs ? 2 : 1;

  struct Rows {
    GroupRow<kType> upper, lower;
  };

  const Int8Rows& x;
  /// The first blocks of the rows of x for columns 2t and 2t + 1 of each tile.
  std::uint32_t first_blocks[kTiles][2];
  std::uint32_t own_blocks[kTiles];  ///< The first block for column g of each tile.

  /// `first_column` is the column of tile 0 in the list.
  __device__ __forceinline__ Int8Products(const Int8Rows& x_, const ColumnList& list,
                                          std::uint32_t first_column)
      : x(x_) {
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
      for (std::uint32_t i = 0; i < 2; ++i)
        first_blocks[tile][i] = first_block_of_column<kType>(
            x, list, first_column + tile * 8 + lane_of_warp() % 4 * 2 + i);
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
      own_blocks[tile] =
          first_block_of_column<kType>(x, list, first_column + tile * 8 + lane_of_warp() / 4);
  }

  struct Words {
    std::uint32_t upper, lower;
  };
  /// load(row) of both rows; if kIsSwapped, in the other order where t >= 2.
  template <bool kIsSwapped, class Load>
  __device__ __forceinline__ static Words load_both(const Rows& w, Load&& load) {
    if constexpr (!kIsSwapped) return {load(w.upper), load(w.lower)};
    const bool is_swapped = lane_of_warp() % 4 >= 2;
    const std::uint32_t first = load(is_swapped ? w.lower : w.upper);
    const std::uint32_t second = load(is_swapped ? w.upper : w.lower);
    return is_swapped ? Words{second, first} : Words{first, second};
  }

  __device__ __forceinline__ static void load_words(std::uint32_t (&a)[kWords], const Rows& w,
                                                    std::uint32_t sub) {
    constexpr bool kHasFourPlanes = kQuadsOfLane == 2 && Shape::kQuadsPerPlane <= 2;
    const std::uint32_t first = sub * kQuadsOfSubBlock + lane_of_warp() % 4 * kLaneStep;
    Words low;
#pragma unroll
    for (std::uint32_t i = 0; i < kQuadsOfLane; ++i) {
      const std::uint32_t n = first + i * kQuadStep;
      if (i == 0 || !kHasPairs)
        low = load_both<kHasFourPlanes>(w, [n](const auto& row) { return row.low_word(n); });
      a[2 * i] = static_cast<std::uint32_t>(w.upper.signed_quad(low.upper, n));
      a[2 * i + 1] = static_cast<std::uint32_t>(w.lower.signed_quad(low.lower, n));
    }
  }

  /// `own` points to the lane's quads of x in shared memory.
  __device__ __forceinline__ static void multiply_words(std::int32_t (&products)[4],
                                                        std::int32_t start,
                                                        const std::uint32_t (&a)[kWords],
                                                        const std::byte* own) {
    if constexpr (kWords == 2) {
      mma_int8_16x8x16(products, start, a, load_aligned<std::uint32_t>(own));
    } else if constexpr (kHasPairs) {
      const auto words = load_aligned<uint2>(own);
      const std::uint32_t b[2] = {words.x, words.y};
      mma_int8_16x8x32(products, start, a, b);
    } else {
      const std::uint32_t b[2] = {load_aligned<std::uint32_t>(own),
                                  load_aligned<std::uint32_t>(own + kQuadStep * kQuad)};
      mma_int8_16x8x32(products, start, a, b);
    }
  }

  /// The lane's quads of the block's first sub-block, in tile 0.
  __device__ __forceinline__ static const std::byte* own_quads(const StagedBlock& block) {
    return block.x + lane_of_warp() / 4 * block.column_stride +
           lane_of_warp() % 4 * kLaneStep * kQuad;
  }

  /// Adds a block without sub-blocks. The minimum of a row is multiplied by the sum of
  /// a column.
  __device__ __forceinline__ void add_block32(Sums& chunk, const Rows& w,
                                              const StagedBlock& block) const {
    std::uint32_t a[kWords];
    load_words(a, w, 0);
    const float d[2] = {w.upper.d(), w.lower.d()};
    const std::byte* const own = own_quads(block);
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
      std::int32_t products[4];
      multiply_words(products, kSumBias, a, own + tile * 8 * block.column_stride);
      const float2 scales =
          reinterpret_cast<const float2*>(block.scales)[tile * 4 + lane_of_warp() % 4];
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i)
        chunk[tile][i] = fmaf(d[i / 2] * (i % 2 == 0 ? scales.x : scales.y),
                              float_of_biased(products[i]), chunk[tile][i]);
      if constexpr (Shape::kHasMin) add_block32_minima(chunk[tile], w, block, tile, scales);
    }
  }
  __device__ __forceinline__ void add_block32_minima(float (&chunk)[4], const Rows& w,
                                                     const StagedBlock& block, std::uint32_t tile,
                                                     float2 scales) const {
    const float m[2] = {w.upper.m(), w.lower.m()};
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::int32_t sum = x_sum(x, first_blocks[tile][i % 2] + block.index);
      chunk[i] =
          fmaf(m[i / 2] * (i % 2 == 0 ? scales.x : scales.y), float_of_sum<kType>(sum), chunk[i]);
    }
  }

  using BlockSums = std::int32_t[kTiles][4];

  /// Adds sub-blocks 4n … 4n + 3.
  __device__ __forceinline__ static void add_sub_blocks(BlockSums& sums, const Rows& w,
                                                        const StagedBlock& block, std::uint32_t n) {
    const std::uint32_t upper = w.upper.scales(n);
    const std::uint32_t lower = w.lower.scales(n);
    const std::byte* const own = own_quads(block) + n * kQuad * Shape::kSubBlock;
#pragma unroll
    for (std::uint32_t i = 0; i < kQuad; ++i) {
      std::uint32_t a[kWords];
      load_words(a, w, n * kQuad + i);
      const std::int32_t scales[2] = {GroupRow<kType>::scale_of(upper, i),
                                      GroupRow<kType>::scale_of(lower, i)};
#pragma unroll
      for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
        std::int32_t products[4];
        multiply_words(products, 0, a, own + tile * 8 * block.column_stride + i * Shape::kSubBlock);
#pragma unroll
        for (std::uint32_t k = 0; k < 4; ++k) sums[tile][k] += scales[k / 2] * products[k];
      }
    }
  }

  /// Multiplies the minima of the rows with the sums of x, which are split into signed bytes.
  __device__ __forceinline__ void multiply_minima(BlockSums& sums, const Rows& w,
                                                  const StagedBlock& block) const {
    constexpr bool kHasFourPlanes = Shape::kSubBlock == kInt8Strip;
    const std::uint32_t n = lane_of_warp() % 4;
    const Words minima =
        load_both<kHasFourPlanes>(w, [n](const auto& row) { return row.minima_of_strips(n); });
    const std::uint32_t a[2] = {minima.upper, minima.lower};
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
      const SplitWords x_sums = split_words(x, own_blocks[tile] + block.index, n);
      std::int32_t high[4];
      mma_int8_16x8x16(high, 0, a, x_sums.high);
      mma_int8_16x8x16(sums[tile], 0, a, x_sums.low);
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) sums[tile][i] = -(high[i] * 128 + sums[tile][i]);
    }
  }

  /// Adds a block of sub-blocks.
  __device__ __forceinline__ void add_block256(Sums& chunk, const Rows& w,
                                               const StagedBlock& block) const {
    BlockSums sums = {};
#pragma unroll 1
    for (std::uint32_t n = 0; n < Shape::kSubBlocks / kQuad; ++n) add_sub_blocks(sums, w, block, n);
    add_sums(chunk, block, {w.upper.d(), w.lower.d()}, sums);
    if constexpr (Shape::kHasMin) {
      multiply_minima(sums, w, block);
      add_sums(chunk, block, {w.upper.m(), w.lower.m()}, sums);
    }
  }

  /// Adds sums times the scales of the rows and of x.
  __device__ __forceinline__ static void add_sums(Sums& chunk, const StagedBlock& block,
                                                  float2 of_rows, const BlockSums& sums) {
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
      const float2 of_x =
          reinterpret_cast<const float2*>(block.scales)[tile * 4 + lane_of_warp() % 4];
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        const float scale = (i < 2 ? of_rows.x : of_rows.y) * (i % 2 == 0 ? of_x.x : of_x.y);
        chunk[tile][i] = fmaf(scale, static_cast<float>(sums[tile][i]), chunk[tile][i]);
      }
    }
  }

  /// Adds a block to the sums of its chunk.
  __device__ __forceinline__ void add(Sums& chunk, const StagedBlock& block) const {
    const std::uint32_t g = lane_of_warp() / 4;
    const Rows w{{block.weights, g}, {block.weights, g + 8}};
    if constexpr (Shape::kHasSubBlocks) {
      add_block256(chunk, w, block);
    } else {
      add_block32(chunk, w, block);
    }
  }

  /// The column of the lane's sum i, and its row in the group.
  __device__ __forceinline__ static std::uint32_t column_of(std::uint32_t tile, std::uint32_t i) {
    return tile * 8 + lane_of_warp() % 4 * 2 + i % 2;
  }
  __device__ __forceinline__ static std::uint32_t row_of(std::uint32_t i) {
    return lane_of_warp() / 4 + i / 2 * 8;
  }
};

/// Up to eight rows of x: a warp multiplies one chunk of a group.
template <TensorType kType>
struct Int8Eight {
  static constexpr TensorType kWeightType = kType;
  static constexpr std::uint32_t kColumns = 8;
  using Products = Int8Products<kType, 1>;
  using Sums = typename Products::Sums;

  Products products;

  __device__ __forceinline__ Int8Eight(const Int8Rows& x, const ColumnList& list)
      : products(x, list, 0) {}

  __device__ __forceinline__ void add(Sums& chunk, const StagedBlock& block) const {
    products.add(chunk, block);
  }

  /// Stores the warp's results of a chunk in parts[column][row].
  __device__ __forceinline__ void store(const Sums& chunk, float* parts) const {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
      parts[Products::column_of(0, i) * kGroupRows + Products::row_of(i)] = chunk[0][i];
  }
};

}  // namespace leasehold::device
