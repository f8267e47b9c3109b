/// How the int8 kernels read x, and how they add the results of blocks.
#pragma once

#include "kernels/cuda/device/int8/int8_units.hpp"
#include "kernels/cuda/device/int8/matmul_int8_params.hpp"
#include "kernels/cuda/device/matmul_columns.cuh"
#include "kernels/cuda/device/row_groups.cuh"

namespace leasehold::device {

/// The number of blocks in a row of x.
template <TensorType kType>
__device__ __forceinline__ std::uint32_t blocks_of_row(const Int8Rows& x) {
  return x.n_in / GroupShape<kType>::kElements;
}

/// The index of the first block of a column's row, among the blocks of all rows. Columns beyond the
/// list repeat the list's first column.
template <TensorType kType>
__device__ __forceinline__ std::uint32_t first_block_of_column(const Int8Rows& x,
                                                               const ColumnList& list,
                                                               std::uint32_t column) {
  return list.source[column < list.count ? column : 0] * blocks_of_row<kType>(x);
}

/// A block of a group and the columns of x that it multiplies, in shared memory.
struct StagedBlock {
  const std::byte* weights;
  const std::byte* x;           ///< Elements of x in the first column.
  std::uint32_t column_stride;  ///< Bytes from a column of x to the next.
  const float* scales;          ///< Scales of x, by column.
  std::uint32_t index;          ///< Index of the block in its row.
};

/// The sums of the two strips of each block of 32; they count the blocks of all rows.
__device__ __forceinline__ const std::int32_t* strips_of(const Int8Rows& x) {
  return reinterpret_cast<const std::int32_t*>(x.sums);
}
__device__ __forceinline__ std::int32_t sum_of_strips(std::int32_t both) {
  return static_cast<std::int16_t>(both) + (both >> 16);
}
/// The sum of q of block b, a block of 32; b counts the blocks of all rows.
__device__ __forceinline__ std::int32_t x_sum(const Int8Rows& x, std::uint32_t b) {
  return sum_of_strips(strips_of(x)[b]);
}

/// SplitSums as words.
struct SplitWords {
  std::uint32_t high, low;
};
/// The sums of strips 4n … 4n + 3 of block b of 256, which counts the blocks of all rows.
__device__ __forceinline__ SplitWords split_words(const Int8Rows& x, std::uint32_t b,
                                                  std::uint32_t n) {
  constexpr std::uint32_t kPerBlock = 256 / kInt8Strip / 4;
  const auto words =
      *reinterpret_cast<const AlignedWords<2>*>(x.split_sums(std::size_t{b} * kPerBlock + n));
  return {words.word[0], words.word[1]};
}

/// The split words of strips 8n … 8n + 7 of block b.
struct SplitWordPair {
  SplitWords of[2];
};
__device__ __forceinline__ SplitWordPair split_word_pair(const Int8Rows& x, std::uint32_t b,
                                                         std::uint32_t n) {
  constexpr std::uint32_t kPerBlock = 256 / kInt8Strip / 4;
  const auto words = load_aligned<uint4>(
      reinterpret_cast<const std::byte*>(x.split_sums(std::size_t{b} * kPerBlock + 2 * n)));
  return {{{words.x, words.y}, {words.z, words.w}}};
}

/// The bits of the float 1.5 · 2^23. Adding a small integer to the bits adds it to the float,
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
