/// One element of a stored row of any type, with the bits of dequantize_row.
///
/// For kernels that read a few rows. kernels/quant/dequantize.hpp and
/// kernels/quant/super_blocks.hpp describe the formats. Products here are exact; adding a minimum
/// rounds once, as there.
#pragma once

#include "kernels/cuda/device/simt.cuh"
#include "kernels/quant/super_blocks.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::device {

__device__ __forceinline__ float times(float scale, int q) {
  return scale * static_cast<float>(q);
}

/// In blocks of 32: two elements per byte, half a block apart.
__device__ __forceinline__ int low_bits(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e % 16) >> (e < 16 ? 0 : 4) & 15;
}
__device__ __forceinline__ int low_and_fifth(const std::byte* high, std::uint32_t e) {
  const int fifth = read_byte(high + e / 8) >> (e % 8) & 1;
  return low_bits(high + 4, e) | fifth << 4;
}

/// In blocks of 256.
__device__ __forceinline__ int two_of_super(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e / 128 * 32 + e % 32) >> (2 * (e / 32 % 4)) & 3;
}
__device__ __forceinline__ int four_of_super(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e / 64 * 32 + e % 32) >> (4 * (e / 32 % 2)) & 15;
}
__device__ __forceinline__ int high_of_super(const std::byte* high, std::uint32_t e) {
  return read_byte(high + e % 32) >> (e / 32) & 1;
}

__device__ __forceinline__ float q2_k_element(const std::byte* block, std::uint32_t e) {
  const int both = read_byte(block + Q2KFields::kScales + e / 16);
  const float scale = times(read_half(block + Q2KFields::kD), both & 15);
  return times(scale, two_of_super(block + Q2KFields::kQuants, e)) -
         times(read_half(block + Q2KFields::kDmin), both >> 4);
}

__device__ __forceinline__ float q3_k_element(const std::byte* block, std::uint32_t e) {
  const float scale =
      times(read_half(block + Q3KFields::kD), q3_scale(block + Q3KFields::kScales, e / 16));
  const int q =
      two_of_super(block + Q3KFields::kQuants, e) + 4 * high_of_super(block + Q3KFields::kHigh, e);
  return times(scale, q - 4);
}

__device__ __forceinline__ float q4_k_element(const std::byte* block, std::uint32_t e) {
  const ScaleAndMin sub = q4_scale_and_min(block + Q4KFields::kScales, e / 32);
  return times(times(read_half(block + Q4KFields::kD), sub.scale),
               four_of_super(block + Q4KFields::kQuants, e)) -
         times(read_half(block + Q4KFields::kDmin), sub.min);
}

__device__ __forceinline__ float q5_k_element(const std::byte* block, std::uint32_t e) {
  const ScaleAndMin sub = q4_scale_and_min(block + Q5KFields::kScales, e / 32);
  const int q = four_of_super(block + Q5KFields::kQuants, e) +
                16 * high_of_super(block + Q5KFields::kHigh, e);
  return times(times(read_half(block + Q5KFields::kD), sub.scale), q) -
         times(read_half(block + Q5KFields::kDmin), sub.min);
}

__device__ __forceinline__ float q6_k_element(const std::byte* block, std::uint32_t e) {
  const float scale =
      times(read_half(block + Q6KFields::kD), read_int8(block + Q6KFields::kScales + e / 16));
  const int four =
      read_byte(block + Q6KFields::kQuants + e / 128 * 64 + e % 64) >> (e % 128 < 64 ? 0 : 4) & 15;
  return times(scale, (four | two_of_super(block + Q6KFields::kHigh, e) << 4) - 32);
}

/// For formats with blocks of 32.
__device__ __forceinline__ float small_block_element(TensorType type, const std::byte* block,
                                                     std::uint32_t e) {
  const float d = read_half(block);
  switch (type) {
    case TensorType::Q8_0:
      return times(d, read_int8(block + kHalfBytes + e));
    case TensorType::Q4_0:
      return times(d, low_bits(block + kHalfBytes, e) - 8);
    case TensorType::Q4_1:
      return times(d, low_bits(block + 2 * kHalfBytes, e)) + read_half(block + kHalfBytes);
    case TensorType::Q5_0:
      return times(d, low_and_fifth(block + kHalfBytes, e) - 16);
    default:
      return times(d, low_and_fifth(block + 2 * kHalfBytes, e)) + read_half(block + kHalfBytes);
  }
}

/// For formats with blocks of 256.
__device__ __forceinline__ float super_block_element(TensorType type, const std::byte* block,
                                                     std::uint32_t e) {
  switch (type) {
    case TensorType::Q2_K:
      return q2_k_element(block, e);
    case TensorType::Q3_K:
      return q3_k_element(block, e);
    case TensorType::Q4_K:
      return q4_k_element(block, e);
    case TensorType::Q5_K:
      return q5_k_element(block, e);
    default:
      return q6_k_element(block, e);
  }
}

/// Element i of a row of blocks; `shape` is the type's block shape.
__device__ __forceinline__ float row_element(TensorType type, BlockShape shape,
                                             const std::byte* row, std::uint32_t i) {
  const std::byte* block = row + std::size_t{i / shape.elements} * shape.size_bytes;
  if (shape.elements == kSuperBlock) return super_block_element(type, block, i % kSuperBlock);
  if (shape.elements > 1) return small_block_element(type, block, i % shape.elements);
  if (type == TensorType::F32) return *reinterpret_cast<const float*>(block);
  return type == TensorType::F16 ? read_half(block) : read_bfloat(block);
}

}  // namespace leasehold::device
