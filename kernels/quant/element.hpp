/// One element of a block of any type, by the formulas of kernels/quant/dequantize.hpp and
/// super_blocks.hpp. For the scalar dequantiser and for kernels that read a few rows. C++20-clean.
#pragma once

#include "kernels/quant/super_blocks.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold {
namespace element_detail {

LEASEHOLD_HD inline float times(float scale, int q) {
  return scale * static_cast<float>(q);
}

/// In blocks of 32: two elements per byte, half a block apart.
LEASEHOLD_HD inline int four_of_small(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e % 16) >> (e < 16 ? 0 : 4) & 15;
}
/// The fifth bits precede the four low bits.
LEASEHOLD_HD inline int five_of_small(const std::byte* high, std::uint32_t e) {
  const int fifth = read_byte(high + e / 8) >> (e % 8) & 1;
  return four_of_small(high + 4, e) | fifth << 4;
}

/// In blocks of 256.
LEASEHOLD_HD inline int two_of_super(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e / 128 * 32 + e % 32) >> (2 * (e / 32 % 4)) & 3;
}
LEASEHOLD_HD inline int four_of_super(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e / 64 * 32 + e % 32) >> (4 * (e / 32 % 2)) & 15;
}
LEASEHOLD_HD inline int high_of_super(const std::byte* high, std::uint32_t e) {
  return read_byte(high + e % 32) >> (e / 32) & 1;
}

LEASEHOLD_HD inline float q2_k(const std::byte* block, std::uint32_t e) {
  using Fields = Q2KFields;
  const int both = read_byte(block + Fields::kScales + e / 16);
  const float scale = times(read_half(block + Fields::kD), both & 15);
  return times(scale, two_of_super(block + Fields::kQuants, e)) -
         times(read_half(block + Fields::kDmin), both >> 4);
}

LEASEHOLD_HD inline float q3_k(const std::byte* block, std::uint32_t e) {
  using Fields = Q3KFields;
  const float scale =
      times(read_half(block + Fields::kD), q3_scale(block + Fields::kScales, e / 16));
  const int q =
      two_of_super(block + Fields::kQuants, e) + 4 * high_of_super(block + Fields::kHigh, e);
  return times(scale, q - 4);
}

LEASEHOLD_HD inline float q4_k(const std::byte* block, std::uint32_t e) {
  using Fields = Q4KFields;
  const ScaleAndMin sub = q4_scale_and_min(block + Fields::kScales, e / 32);
  const float scale = times(read_half(block + Fields::kD), sub.scale);
  return times(scale, four_of_super(block + Fields::kQuants, e)) -
         times(read_half(block + Fields::kDmin), sub.min);
}

LEASEHOLD_HD inline float q5_k(const std::byte* block, std::uint32_t e) {
  using Fields = Q5KFields;
  const ScaleAndMin sub = q4_scale_and_min(block + Fields::kScales, e / 32);
  const float scale = times(read_half(block + Fields::kD), sub.scale);
  const int q =
      four_of_super(block + Fields::kQuants, e) + 16 * high_of_super(block + Fields::kHigh, e);
  return times(scale, q) - times(read_half(block + Fields::kDmin), sub.min);
}

LEASEHOLD_HD inline float q6_k(const std::byte* block, std::uint32_t e) {
  using Fields = Q6KFields;
  const float scale =
      times(read_half(block + Fields::kD), read_int8(block + Fields::kScales + e / 16));
  const int four =
      read_byte(block + Fields::kQuants + e / 128 * 64 + e % 64) >> (e % 128 < 64 ? 0 : 4) & 15;
  return times(scale, (four | two_of_super(block + Fields::kHigh, e) << 4) - 32);
}

}  // namespace element_detail

/// Element e of a block. `type` is not F32, whose elements are stored as they are.
LEASEHOLD_HD inline float block_element(TensorType type, const std::byte* block, std::uint32_t e) {
  using namespace element_detail;  // NOLINT(google-build-using-namespace)
  const float d = read_half(block);
  const std::byte* const after_d = block + kHalfBytes;
  const std::byte* const after_m = block + 2 * kHalfBytes;
  switch (type) {
    case TensorType::BF16:
      return read_bfloat(block);
    case TensorType::Q8_0:
      return times(d, read_int8(after_d + e));
    case TensorType::Q4_0:
      return times(d, four_of_small(after_d, e) - 8);
    case TensorType::Q4_1:
      return times(d, four_of_small(after_m, e)) + read_half(after_d);
    case TensorType::Q5_0:
      return times(d, five_of_small(after_d, e) - 16);
    case TensorType::Q5_1:
      return times(d, five_of_small(after_m, e)) + read_half(after_d);
    case TensorType::Q2_K:
      return q2_k(block, e);
    case TensorType::Q3_K:
      return q3_k(block, e);
    case TensorType::Q4_K:
      return q4_k(block, e);
    case TensorType::Q5_K:
      return q5_k(block, e);
    case TensorType::Q6_K:
      return q6_k(block, e);
    case TensorType::F16:
    case TensorType::F32:
      break;
  }
  return d;
}

}  // namespace leasehold
