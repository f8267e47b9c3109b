/// Multiplies a block of four groups with all columns of x, with wgmma: a warp has one group, and
/// its warpgroup four.
///
/// Lane 4g + t has rows g and g + 8 of its warp's group, and of these the sums of columns 8j + 2t
/// and the next (the fragments of wgmma: wgmma.cuh). It multiplies quads t and t + 4 of each 32
/// elements.
///
/// A block of 256 with digits (int8_digits.cuh) has one int32 sum per result: the products of the
/// highest digit, times 8, plus those of the next digit. No bit differs from sums per sub-block,
/// because the sums are integers.
#pragma once

#include "kernels/cuda/device/int8/int8_columns.cuh"
#include "kernels/cuda/device/int8/int8_digits.cuh"

namespace leasehold::device {

/// One or more blocks of a group and of x in shared memory.
struct StagedUnit {
  const std::byte* weights;  ///< The warp's group.
  const std::byte* x;        ///< Pieces of 16 elements, [pieces][columns], piece_stride apart.
  const float* scales;       ///< Of x: [blocks][columns]
  /// Of blocks of 32 with a minimum: the sums of the block's two strips of x, [blocks][columns].
  const std::int32_t* strips;
  std::uint32_t n_blocks;
};

template <TensorType kType, std::uint32_t kColumns>
struct Int8ManyProducts {
  using Shape = GroupShape<kType>;
  static constexpr Int8ManyStage kStage = int8_many_stage(kType, kColumns);
  static constexpr std::uint32_t kPieceStride = kStage.piece_stride();
  static constexpr std::uint32_t kSums = kColumns / 2;
  using Sums = float[kSums];
  using BlockSums = std::int32_t[kSums];
  using Fragment = std::uint32_t[4];

  struct Rows {
    GroupRow<kType> upper, lower;
  };
  __device__ __forceinline__ static Rows rows_of(const std::byte* weights) {
    const std::uint32_t g = lane_of_warp() / 4;
    return {{weights, g}, {weights, g + 8}};
  }

  static constexpr std::uint32_t kStepElements = 32;

  /// The word with the low bits of quad n + t. n is a multiple of 4, so the lane's part of the
  /// address is the same for every n.
  __device__ __forceinline__ static std::uint32_t own_low_word(const GroupRow<kType>& row,
                                                               std::uint32_t n) {
    const std::uint32_t plane = lane_of_warp() % 4 / Shape::kQuadsPerPlane;
    return GroupRow<kType>{row.block + plane * kPlaneBytes, row.row}.low_word(n);
  }

  /// Starts the product of a step: of x it takes two pieces.
  template <bool kIsSigned>
  __device__ __forceinline__ static void start(BlockSums& sums, const Fragment& a,
                                               const std::byte* x, bool adds) {
    wgmma_int8_64x32<static_cast<int>(kColumns), kIsSigned>(sums, a, x, kPieceStride, 8 * kPiece,
                                                            adds);
  }

  /// Adds sums times the scales of the rows and of x.
  __device__ __forceinline__ static void add_sums(Sums& chunk, const float* scales, float2 of_rows,
                                                  const BlockSums& sums) {
#pragma unroll
    for (std::uint32_t i = 0; i < kSums; i += 4) {
      const float2 of_x = reinterpret_cast<const float2*>(scales)[i + lane_of_warp() % 4];
#pragma unroll
      for (std::uint32_t k = 0; k < 4; ++k) {
        const float scale = (k < 2 ? of_rows.x : of_rows.y) * (k % 2 == 0 ? of_x.x : of_x.y);
        chunk[i + k] = fmaf(scale, static_cast<float>(sums[i + k]), chunk[i + k]);
      }
    }
  }

  __device__ __forceinline__ static void multiply_sums(BlockSums& sums, std::int32_t by) {
#pragma unroll
    for (std::uint32_t i = 0; i < kSums; ++i) sums[i] *= by;
  }
};

/// Blocks of 256 with digits.
template <TensorType kType, std::uint32_t kColumns>
struct Int8DigitProducts : Int8ManyProducts<kType, kColumns> {
  using Base = Int8ManyProducts<kType, kColumns>;
  using Base::kPieceStride;
  using Base::kStepElements;
  using typename Base::BlockSums;
  using typename Base::Fragment;
  using typename Base::Rows;
  using typename Base::Shape;
  using typename Base::Sums;
  using Digits = ScaleDigits<kType>;
  /// A part of a block is multiplied together, in steps of 32 elements. Two blocks of a kernel for
  /// fewer columns share the registers of an SM.
  static constexpr std::uint32_t kSteps = kColumns > 64 ? 4 : 2;
  static constexpr std::uint32_t kParts = Shape::kElements / kStepElements / kSteps;
  static constexpr std::uint32_t kPartSubBlocks = kSteps * kStepElements / Shape::kSubBlock;
  using Part = Fragment[kSteps];

  /// The codes of a part times the digits at kPlace.
  template <std::uint32_t kPlace, std::uint32_t kPart>
  __device__ __forceinline__ static void load_part(Part& a, const Rows& w) {
    constexpr std::uint32_t kFirstSub = kPart * kPartSubBlocks;
    constexpr std::uint32_t kWords = (kPartSubBlocks + kQuad - 1) / kQuad;
    std::uint32_t upper[kWords], lower[kWords];
#pragma unroll
    for (std::uint32_t i = 0; i < kWords; ++i) {
      upper[i] = Digits::template raw<kPlace>(w.upper.scales(kFirstSub / kQuad + i));
      lower[i] = Digits::template raw<kPlace>(w.lower.scales(kFirstSub / kQuad + i));
    }
#pragma unroll
    for (std::uint32_t i = 0; i < 2 * kSteps; ++i) {
      const std::uint32_t n = (kPart * 2 * kSteps + i) * 4;
      const std::uint32_t sub = kFirstSub % kQuad + i * kPiece / Shape::kSubBlock;
      a[i / 2][i % 2 * 2] = scaled_quad<kPlace>(w.upper, n, upper[sub / kQuad], sub % kQuad);
      a[i / 2][i % 2 * 2 + 1] = scaled_quad<kPlace>(w.lower, n, lower[sub / kQuad], sub % kQuad);
    }
  }
  /// Quad n + t times digit i. n is a multiple of 4.
  template <std::uint32_t kPlace>
  __device__ __forceinline__ static std::uint32_t scaled_quad(const GroupRow<kType>& row,
                                                              std::uint32_t n, std::uint32_t digits,
                                                              std::uint32_t i) {
    const auto codes =
        static_cast<std::uint32_t>(row.quad(Base::own_low_word(row, n), n + lane_of_warp() % 4));
    return Digits::template times<kPlace>(codes, digits, i);
  }

  __device__ __forceinline__ static void start_part(BlockSums& sums, const Part& a,
                                                    const std::byte* x, std::uint32_t part,
                                                    bool adds) {
    wgmma_fence();
#pragma unroll
    for (std::uint32_t step = 0; step < kSteps; ++step)
      Base::template start<Digits::kIsSigned>(
          sums, a[step], x + (part * kSteps + step) * 2 * kPieceStride, adds || step > 0);
    wgmma_commit();
  }

  /// Multiplies part kIndex of all digits, and those after it. While the tensor cores multiply a
  /// part, the warps prepare the next one in the registers of the part before it.
  template <std::uint32_t kIndex>
  __device__ __forceinline__ static void multiply_from(BlockSums& sums, Part (&a)[2], const Rows& w,
                                                       const std::byte* x) {
    constexpr std::uint32_t kNext = kIndex + 1;
    start_part(sums, a[kIndex % 2], x, kIndex % kParts, kIndex > 0);
    if constexpr (kNext == kParts * Digits::kCount) {
      wgmma_wait<0>();
    } else {
      if constexpr (kIndex > 0) wgmma_wait<1>();
      load_part<kNext / kParts, kNext % kParts>(a[kNext % 2], w);
      if constexpr (kNext % kParts == 0) {
        wgmma_wait<0>();
        Base::multiply_sums(sums, 8);
      }
      multiply_from<kNext>(sums, a, w, x);
    }
  }

  /// Four minima, negative, as signed bytes.
  __device__ __forceinline__ static std::uint32_t negative_minima(const GroupRow<kType>& row,
                                                                  std::uint32_t n) {
    return (0x80808080u - row.minima_of_strips(n)) ^ 0x80808080u;
  }

  /// Multiplies the negative minima with the sums of x: with the upper parts, times 128, and then
  /// with the lower parts. In SplitSums, quads of upper and of lower parts alternate.
  __device__ __forceinline__ static void multiply_minima(BlockSums& sums, const Rows& w,
                                                         const std::byte* x) {
    const std::uint32_t n = lane_of_warp() % 4 / 2;
    const std::uint32_t part = lane_of_warp() % 2;
    const Fragment minima = {negative_minima(w.upper, n), negative_minima(w.lower, n),
                             negative_minima(w.upper, n + 2), negative_minima(w.lower, n + 2)};
#pragma unroll
    for (std::uint32_t pass = 0; pass < 2; ++pass) {
      if (pass == 1) Base::multiply_sums(sums, 128);
      Fragment a;
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) a[i] = part == pass ? minima[i] : 0;
      wgmma_fence();
      Base::template start<true>(sums, a, x, pass == 1);
      wgmma_commit();
      wgmma_wait<0>();
    }
  }

  /// Adds the unit's block, then calls after_block().
  template <class AfterBlock>
  __device__ __forceinline__ static void add(Sums& chunk, const StagedUnit& unit,
                                             AfterBlock&& after_block) {
    const Rows w = Base::rows_of(unit.weights);
    BlockSums sums;
    Part a[2];
    load_part<0, 0>(a[0], w);
    multiply_from<0>(sums, a, w, unit.x);
    Base::add_sums(chunk, unit.scales, {w.upper.d(), w.lower.d()}, sums);
    if constexpr (Shape::kHasMin) {
      multiply_minima(sums, w, unit.x + Shape::kElements / kPiece * kPieceStride);
      Base::add_sums(chunk, unit.scales, {w.upper.m(), w.lower.m()}, sums);
    }
    after_block();
  }
};

/// Blocks of 32, in pairs: while the tensor cores multiply the second one, the warps add the first.
template <TensorType kType, std::uint32_t kColumns>
struct Int8PlainProducts : Int8ManyProducts<kType, kColumns> {
  using Base = Int8ManyProducts<kType, kColumns>;
  using Base::kPieceStride;
  using typename Base::BlockSums;
  using typename Base::Fragment;
  using typename Base::Rows;
  using typename Base::Shape;
  using typename Base::Sums;

  __device__ __forceinline__ static void load_block(Fragment& a, const StagedUnit& unit,
                                                    std::uint32_t i) {
    const Rows w = Base::rows_of(unit.weights + i * Shape::kBytes);
    const std::uint32_t t = lane_of_warp() % 4;
#pragma unroll
    for (std::uint32_t k = 0; k < 2; ++k) {
      const std::uint32_t n = 4 * k;
      a[2 * k] =
          static_cast<std::uint32_t>(w.upper.signed_quad(Base::own_low_word(w.upper, n), n + t));
      a[2 * k + 1] =
          static_cast<std::uint32_t>(w.lower.signed_quad(Base::own_low_word(w.lower, n), n + t));
    }
  }

  __device__ __forceinline__ static void add_block(Sums& chunk, const BlockSums& sums,
                                                   const StagedUnit& unit, std::uint32_t i) {
    const Rows w = Base::rows_of(unit.weights + i * Shape::kBytes);
    if constexpr (!Shape::kHasMin) {
      Base::add_sums(chunk, unit.scales + i * kColumns, {w.upper.d(), w.lower.d()}, sums);
    } else {
      const float of_rows[2][2] = {{w.upper.d(), w.upper.m()}, {w.lower.d(), w.lower.m()}};
#pragma unroll
      for (std::uint32_t k = 0; k < Base::kSums; k += 2)
        add_with_minima(&chunk[k], of_rows[k / 2 % 2], unit,
                        i * kColumns / 2 + k / 4 * 4 + lane_of_warp() % 4, &sums[k]);
    }
  }
  /// Adds the sums of two neighbouring columns, the pair-th of the unit, in a row with d and m.
  __device__ __forceinline__ static void add_with_minima(float* chunk, const float (&of_row)[2],
                                                         const StagedUnit& unit, std::uint32_t pair,
                                                         const std::int32_t* sums) {
    const float2 of_x = reinterpret_cast<const float2*>(unit.scales)[pair];
    const uint2 strips = reinterpret_cast<const uint2*>(unit.strips)[pair];
#pragma unroll
    for (std::uint32_t k = 0; k < 2; ++k) {
      const float scale = k == 0 ? of_x.x : of_x.y;
      const std::int32_t min =
          sum_of_strips(static_cast<std::int32_t>(k == 0 ? strips.x : strips.y));
      chunk[k] = fmaf(of_row[0] * scale, static_cast<float>(sums[k]), chunk[k]);
      chunk[k] = fmaf(of_row[1] * scale, static_cast<float>(min), chunk[k]);
    }
  }

  /// Adds the unit's blocks, and calls after_block() after each. The last pair may have one block;
  /// the other's sums are not used.
  template <class AfterBlock>
  __device__ __forceinline__ static void add(Sums& chunk, const StagedUnit& unit,
                                             AfterBlock&& after_block) {
#pragma unroll 1
    for (std::uint32_t i = 0; i < unit.n_blocks; i += 2) {
      BlockSums sums[2];
      Fragment a[2];
      load_block(a[0], unit, i);
      load_block(a[1], unit, i + 1);
      wgmma_fence();
#pragma unroll
      for (std::uint32_t k = 0; k < 2; ++k) {
        Base::template start<true>(sums[k], a[k], unit.x + (i + k) * 2 * kPieceStride, false);
        wgmma_commit();
      }
      wgmma_wait<1>();
      add_block(chunk, sums[0], unit, i);
      wgmma_wait<0>();
      after_block();
      if (i + 1 == unit.n_blocks) return;
      add_block(chunk, sums[1], unit, i + 1);
      after_block();
    }
  }
};

}  // namespace leasehold::device
