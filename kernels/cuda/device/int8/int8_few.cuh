/// One or two rows of x: a warp multiplies one chunk of a group with dp4a. A row of the group has
/// two lanes; each multiplies one half of every sub-block, or of Q4_K one half of the sub-blocks.
/// Integer sums do not depend on the order.
///
/// Sixteen lanes read 64 neighbouring bytes of a plane, so two planes at an odd distance fill the
/// banks of shared memory: the second half reads each pair of planes in reverse.
#pragma once

#include "kernels/cuda/device/int8/int8_chunk_ring.cuh"

namespace leasehold::device {

template <TensorType kType, std::uint32_t kNumber>
struct Int8Few {
  using Shape = GroupShape<kType>;
  using Sums = float[kNumber];  ///< Of a chunk, by column; both lanes of a row have the same.
  static constexpr TensorType kWeightType = kType;
  static constexpr std::uint32_t kColumns = kNumber;
  static constexpr std::uint32_t kWords = Shape::kSubBlock / kQuad;
  static constexpr std::uint32_t kOwnWords = kWords / 2;  ///< Words of a lane: 2 or 4.
  /// Planes of a lane's words; with one, or a part of one, both halves read neighbouring planes or
  /// the same.
  static constexpr std::uint32_t kOwnPlanes = kOwnWords / Shape::kQuadsPerPlane;

  /// Whether a lane multiplies half of the sub-blocks instead, so that it needs half of the scales:
  /// with codes of four bits without an offset, whose words need no other plane.
  static constexpr bool kOwnsSubBlocks = Shape::kHasSubBlocks && Shape::kFormat.low_bits == 4 &&
                                         Shape::kFormat.high_bits == 0 && Shape::kOffset == 0 &&
                                         Shape::kTable == CodeTable::None;
  static constexpr std::uint32_t kPlanes = kWords / Shape::kQuadsPerPlane;  ///< Of a sub-block.
  static constexpr std::uint32_t kOwnSubBlocks = Shape::kSubBlocks / 2;

  struct BlockSums {
    std::int32_t s[kColumns];
    std::int32_t t[kColumns];
  };

  const Int8Rows& x;
  std::uint32_t first_blocks[kColumns];  ///< The first blocks of the columns' rows.
  std::uint32_t row;                     ///< Row of the group.
  std::uint32_t half;

  __device__ __forceinline__ Int8Few(const Int8Rows& x_, const ColumnList& list)
      : x(x_), row(lane_of_warp() % kGroupRows), half(lane_of_warp() / kGroupRows) {
    for (std::uint32_t c = 0; c < kColumns; ++c)
      first_blocks[c] = first_block_of_column<kType>(x, list, c);
  }

  __device__ __forceinline__ static std::int32_t product(const std::int32_t (&w)[kOwnWords],
                                                         const std::byte* x) {
    std::int32_t sum = 0;
    if constexpr (kOwnWords == 4) {
      const auto words = load_aligned<uint4>(x);
      sum = __dp4a(w[0], static_cast<std::int32_t>(words.x), sum);
      sum = __dp4a(w[1], static_cast<std::int32_t>(words.y), sum);
      sum = __dp4a(w[2], static_cast<std::int32_t>(words.z), sum);
      sum = __dp4a(w[3], static_cast<std::int32_t>(words.w), sum);
    } else {
      const auto words = load_aligned<uint2>(x);
      sum = __dp4a(w[0], static_cast<std::int32_t>(words.x), sum);
      sum = __dp4a(w[1], static_cast<std::int32_t>(words.y), sum);
    }
    return sum;
  }

  /// The lane's words of the sub-block whose first quad is `first`.
  __device__ __forceinline__ void load_words(std::int32_t (&words)[kOwnWords],
                                             const GroupRow<kType>& w, std::uint32_t first) const {
    if constexpr (kOwnPlanes < 2) {
#pragma unroll
      for (std::uint32_t i = 0; i < kOwnWords; ++i)
        words[i] = w.signed_quad(w.low_word(first + i), first + i);
    } else {
      std::uint32_t low[kOwnPlanes];
#pragma unroll
      for (std::uint32_t k = 0; k < kOwnPlanes; ++k)
        low[k] = w.low_word(first + (k ^ half) * Shape::kQuadsPerPlane);
#pragma unroll
      for (std::uint32_t i = 0; i < kOwnWords; ++i) {
        const std::uint32_t k = i / Shape::kQuadsPerPlane;
        words[i] = w.signed_quad(half == 0 ? low[k] : low[k ^ 1], first + i);
      }
    }
  }

  __device__ __forceinline__ void add_sub_block(BlockSums& sums, const GroupRow<kType>& w,
                                                const StagedBlock& block, std::uint32_t sub) const {
    std::int32_t words[kOwnWords];
    load_words(words, w, sub * kWords + half * kOwnWords);
    const std::int32_t scale = w.scale(sub);
    const std::uint32_t own = sub * Shape::kSubBlock + half * kOwnWords * kQuad;
#pragma unroll
    for (std::uint32_t c = 0; c < kColumns; ++c)
      sums.s[c] += scale * product(words, block.x + c * block.column_stride + own);
  }

  /// The lane's sub-blocks in shared memory. Of two planes, the second half reads the second one
  /// first, so that both halves read at an odd distance.
  struct OwnSubBlocks {
    const std::byte* planes[2];  ///< The row's words of the first planes, as they are read.
    const std::byte* x[2];       ///< The elements of these planes in the first column.
  };
  __device__ __forceinline__ OwnSubBlocks own_sub_blocks(const StagedBlock& block) const {
    const std::byte* const words = block.weights + Shape::kLowAt + row * kQuad;
    const std::uint32_t first = half * kOwnSubBlocks * kPlanes;
    constexpr std::uint32_t kXBytes = Shape::kQuadsPerPlane * kQuad;
    return {{words + (first + half) * kPlaneBytes, words + (first + 1 - half) * kPlaneBytes},
            {block.x + (first + half) * kXBytes, block.x + (first + 1 - half) * kXBytes}};
  }
  /// The sum of the products of a sub-block, from its planes as they are read. The upper codes in
  /// their place are sixteen times as large, and so is their sum.
  __device__ __forceinline__ static std::int32_t own_product(const std::uint32_t (&low)[kPlanes],
                                                             const std::byte* const (&x)[2],
                                                             std::uint32_t at) {
    std::int32_t upper = 0;
    std::int32_t sum = 0;
#pragma unroll
    for (std::uint32_t p = 0; p < kPlanes; ++p) {
      const auto words = load_aligned<uint2>(x[p % 2] + at + p / 2 * 4 * kQuad);
      upper = dot_of_codes(low[p] & 0xF0F0F0F0u, words.y, upper);
      sum = dot_of_codes(low[p] & 0x0F0F0F0Fu, words.x, sum);
    }
    return sum + (upper >> 4);
  }
  __device__ __forceinline__ void add_own_sub_blocks(BlockSums& sums, const GroupRow<kType>& w,
                                                     const StagedBlock& block) const {
    const OwnSubBlocks own = own_sub_blocks(block);
    const std::uint32_t scales = w.scales(half);
#pragma unroll
    for (std::uint32_t i = 0; i < kOwnSubBlocks; ++i) {
      std::uint32_t low[kPlanes];
#pragma unroll
      for (std::uint32_t p = 0; p < kPlanes; ++p)
        low[p] = load_aligned<std::uint32_t>(own.planes[p % 2] +
                                             (i * kPlanes + p / 2 * 2) * kPlaneBytes);
      const std::int32_t scale = GroupRow<kType>::scale_of(scales, i);
#pragma unroll
      for (std::uint32_t c = 0; c < kColumns; ++c)
        sums.s[c] +=
            scale * own_product(low, own.x, c * block.column_stride + i * Shape::kSubBlock);
    }
  }

  /// Adds the minima of the lane's sub-blocks times the sums of x.
  __device__ __forceinline__ void add_own_minima(BlockSums& sums, const GroupRow<kType>& w,
                                                 const StagedBlock& block) const {
    const std::uint32_t minima = w.minima(half);
    const auto first = static_cast<std::int32_t>(__byte_perm(minima, 0, 0x1100));
    const auto second = static_cast<std::int32_t>(__byte_perm(minima, 0, 0x3322));
#pragma unroll
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      const SplitWordPair of_x = split_word_pair(x, first_blocks[c] + block.index, half);
      std::int32_t high = __dp4a(first, static_cast<std::int32_t>(of_x.of[0].high), 0);
      high = __dp4a(second, static_cast<std::int32_t>(of_x.of[1].high), high);
      std::int32_t low = __dp4a(first, static_cast<std::int32_t>(of_x.of[0].low), 0);
      low = __dp4a(second, static_cast<std::int32_t>(of_x.of[1].low), low);
      sums.t[c] = -128 * high - low;
    }
  }

  /// Adds the minima times the sums of x, for every other four strips or for the only sub-block.
  __device__ __forceinline__ void add_minima(BlockSums& sums, const GroupRow<kType>& w,
                                             const StagedBlock& block) const {
#pragma unroll
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      const std::uint32_t b = first_blocks[c] + block.index;
      if constexpr (!Shape::kHasSubBlocks) {
        sums.t[c] = x_sum(x, b);
      } else {
#pragma unroll
        for (std::uint32_t i = 0; i < 2; ++i) {
          const std::uint32_t n = 2 * i + half;
          const SplitWords of_x = split_words(x, b, n);
          const auto minima = static_cast<std::int32_t>(w.minima_of_strips(n));
          sums.t[c] -= 128 * __dp4a(minima, static_cast<std::int32_t>(of_x.high), 0) +
                       __dp4a(minima, static_cast<std::int32_t>(of_x.low), 0);
        }
      }
    }
  }

  __device__ __forceinline__ BlockSums sums_of(const GroupRow<kType>& w,
                                               const StagedBlock& block) const {
    BlockSums sums = {};
    if constexpr (kOwnsSubBlocks) {
      add_own_sub_blocks(sums, w, block);
      if constexpr (Shape::kHasMin) add_own_minima(sums, w, block);
    } else {
#pragma unroll
      for (std::uint32_t sub = 0; sub < Shape::kSubBlocks; ++sub)
        add_sub_block(sums, w, block, sub);
      if constexpr (Shape::kHasMin) add_minima(sums, w, block);
    }
#pragma unroll
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      sums.s[c] += __shfl_xor_sync(kAllLanes, sums.s[c], kGroupRows);
      if constexpr (Shape::kHasMin && Shape::kHasSubBlocks)
        sums.t[c] += __shfl_xor_sync(kAllLanes, sums.t[c], kGroupRows);
    }
    return sums;
  }

  /// Adds a block to the sums of its chunk.
  __device__ __forceinline__ void add(Sums& chunk, const StagedBlock& block) const {
    const GroupRow<kType> w{block.weights, row};
    const BlockSums sums = sums_of(w, block);
    const float d = w.d();
    const float m = Shape::kHasMin ? w.m() : 0.0F;
#pragma unroll
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      const float scale = block.scales[c];
      chunk[c] = fmaf(d * scale, float_of_sum<kType>(sums.s[c]), chunk[c]);
      if constexpr (Shape::kHasMin)
        chunk[c] = fmaf(m * scale, float_of_sum<kType>(sums.t[c]), chunk[c]);
    }
  }

  /// Stores the warp's results of a chunk in parts[column][row].
  __device__ __forceinline__ void store(const Sums& chunk, float* parts) const {
    if (half != 0) return;
    for (std::uint32_t c = 0; c < kColumns; ++c) parts[c * kGroupRows + row] = chunk[c];
  }
};

}  // namespace leasehold::device
