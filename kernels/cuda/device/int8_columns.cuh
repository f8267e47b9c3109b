/// What the int8 kernels read of x, and how they add the results of blocks.
#pragma once

#include "kernels/cuda/device/int8_units.hpp"
#include "kernels/cuda/device/matmul_columns.cuh"
#include "kernels/cuda/device/matmul_int8_params.hpp"
#include "kernels/cuda/device/row_groups.cuh"

namespace leasehold::device {

/// The blocks of a row of x.
template <TensorType kType>
__device__ __forceinline__ std::uint32_t blocks_of_row(const Int8Rows& x) {
  return x.n_in / GroupShape<kType>::kElements;
}

/// The index of the first block of a column's row, among the blocks of all rows. Columns beyond the
/// list repeat its first one.
template <TensorType kType>
__device__ __forceinline__ std::uint32_t first_block_of_column(const Int8Rows& x,
                                                               const ColumnList& list,
                                                               std::uint32_t column) {
  return list.source[column < list.count ? column : 0] * blocks_of_row<kType>(x);
}

/// The sum of q of a sub-block of block b, which counts the blocks of all rows.
template <TensorType kType>
__device__ __forceinline__ std::int32_t x_sum(const Int8Rows& x, std::uint32_t b,
                                              std::uint32_t sub) {
  using Shape = GroupShape<kType>;
  constexpr std::uint32_t kStrips = Shape::kSubBlock / kInt8Strip;
  const std::int16_t* const strip = x.sums + b * (Shape::kElements / kInt8Strip) + sub * kStrips;
  if constexpr (kStrips == 1) return *strip;
  const std::int32_t both = *reinterpret_cast<const std::int32_t*>(strip);
  return static_cast<std::int16_t>(both) + (both >> 16);
}

/// 1.5 · 2^23 as a float. The bits of this float plus a short sum are the float plus the sum,
/// exactly, which is faster than a conversion.
inline constexpr std::int32_t kSumBias = 0x4B400000;
__device__ __forceinline__ float float_of_biased(std::int32_t biased) {
  return __uint_as_float(static_cast<std::uint32_t>(biased)) - 12582912.0F;
}

/// The sum of a block as a float.
template <TensorType kType>
__device__ __forceinline__ float float_of_sum(std::int32_t sum) {
  if constexpr (GroupShape<kType>::kHasSubBlocks) return static_cast<float>(sum);
  static_assert(GroupShape<kType>::kHasSubBlocks || GroupShape<kType>::kLargestSum < (1 << 22));
  return float_of_biased(kSumBias + sum);
}

}  // namespace leasehold::device
