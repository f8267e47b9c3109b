/// Element e of a block, by the formulas of kernels/quant/dequantize.hpp and super_blocks.hpp: one
/// function per quantised type. The scalar dequantiser and kernels that read a few rows use them.
/// C++20-clean.
#pragma once

#include "kernels/quant/code_values.hpp"
#include "kernels/quant/super_blocks.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::element {

LEASEHOLD_HD inline float times(float scale, int q) {
  return scale * static_cast<float>(q);
}

/// The halves of a block: its scale, and its minimum or the scale of its minima.
struct Halves {
  float d;
  float m = 0.0F;
};

LEASEHOLD_HD inline Halves halves_of(TensorType type, const std::byte* block) {
  switch (type) {
    case TensorType::Q2_K:
      return {read_half(block + Q2KFields::kD), read_half(block + Q2KFields::kDmin)};
    case TensorType::Q3_K:
      return {read_half(block + Q3KFields::kD)};
    case TensorType::Q6_K:
      return {read_half(block + Q6KFields::kD)};
    case TensorType::MXFP4:
      return {half_power_of_two(static_cast<std::uint32_t>(read_byte(block)))};
    default:  // The others begin with d; bytes 2 and 3 are m, if there is one.
      return {read_half(block), read_half(block + kHalfBytes)};
  }
}

/// Blocks of 32 hold two elements per byte, half a block apart.
LEASEHOLD_HD inline int low4_of_block32(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e % 16) >> (e < 16 ? 0 : 4) & 15;
}
/// The four bytes of fifth bits precede the low four bits of the elements.
LEASEHOLD_HD inline int bits5_of_block32(const std::byte* high, std::uint32_t e) {
  const int fifth = read_byte(high + e / 8) >> (e % 8) & 1;
  return low4_of_block32(high + 4, e) | fifth << 4;
}

LEASEHOLD_HD inline float q8_0(const std::byte* block, Halves halves, std::uint32_t e) {
  return times(halves.d, read_int8(block + kHalfBytes + e));
}

LEASEHOLD_HD inline float q4_0(const std::byte* block, Halves halves, std::uint32_t e) {
  return times(halves.d, low4_of_block32(block + kHalfBytes, e) - 8);
}

LEASEHOLD_HD inline float q4_1(const std::byte* block, Halves halves, std::uint32_t e) {
  return times(halves.d, low4_of_block32(block + 2 * kHalfBytes, e)) + halves.m;
}

LEASEHOLD_HD inline float q5_0(const std::byte* block, Halves halves, std::uint32_t e) {
  return times(halves.d, bits5_of_block32(block + kHalfBytes, e) - 16);
}

LEASEHOLD_HD inline float q5_1(const std::byte* block, Halves halves, std::uint32_t e) {
  return times(halves.d, bits5_of_block32(block + 2 * kHalfBytes, e)) + halves.m;
}

/// The value of a 4-bit code of IQ4_NL and IQ4_XS, or twice that of MXFP4.
template <CodeTable kTable>
LEASEHOLD_HD inline int value_of(int code) {
  constexpr CodeValues kValues = ValuesOf<kTable>::kCodes;
  return kValues.of[code] - (kTable == CodeTable::Iq4 ? kIq4Offset : kMxfp4Offset);
}

LEASEHOLD_HD inline float iq4_nl(const std::byte* block, Halves halves, std::uint32_t e) {
  return times(halves.d, value_of<CodeTable::Iq4>(low4_of_block32(block + kHalfBytes, e)));
}

LEASEHOLD_HD inline float mxfp4(const std::byte* block, Halves halves, std::uint32_t e) {
  return times(halves.d, value_of<CodeTable::Mxfp4>(low4_of_block32(block + 1, e)));
}

LEASEHOLD_HD inline float iq4_xs(const std::byte* block, Halves halves, std::uint32_t e) {
  const float scale = times(halves.d, iq4_xs_scale(block, e / 32));
  const std::byte* quants = block + Iq4XsFields::kQuants + e / 32 * 16;
  return times(scale, value_of<CodeTable::Iq4>(low4_of_block32(quants, e % 32)));
}

/// The next three functions read bits of element e in blocks of 256.
LEASEHOLD_HD inline int bits2_of_block256(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e / 128 * 32 + e % 32) >> (2 * (e / 32 % 4)) & 3;
}
LEASEHOLD_HD inline int bits4_of_block256(const std::byte* quants, std::uint32_t e) {
  return read_byte(quants + e / 64 * 32 + e % 32) >> (4 * (e / 32 % 2)) & 15;
}
LEASEHOLD_HD inline int high_bit_of_block256(const std::byte* high, std::uint32_t e) {
  return read_byte(high + e % 32) >> (e / 32) & 1;
}

LEASEHOLD_HD inline float q2_k(const std::byte* block, Halves halves, std::uint32_t e) {
  using Fields = Q2KFields;
  const int both = read_byte(block + Fields::kScales + e / 16);
  const float scale = times(halves.d, both & 15);
  return times(scale, bits2_of_block256(block + Fields::kQuants, e)) - times(halves.m, both >> 4);
}

LEASEHOLD_HD inline float q3_k(const std::byte* block, Halves halves, std::uint32_t e) {
  using Fields = Q3KFields;
  const float scale = times(halves.d, q3_scale(block + Fields::kScales, e / 16));
  const int q = bits2_of_block256(block + Fields::kQuants, e) +
                4 * high_bit_of_block256(block + Fields::kHigh, e);
  return times(scale, q - 4);
}

LEASEHOLD_HD inline float q4_k(const std::byte* block, Halves halves, std::uint32_t e) {
  using Fields = Q4KFields;
  const ScaleAndMin sub = q4_scale_and_min(block + Fields::kScales, e / 32);
  const float scale = times(halves.d, sub.scale);
  return times(scale, bits4_of_block256(block + Fields::kQuants, e)) - times(halves.m, sub.min);
}

LEASEHOLD_HD inline float q5_k(const std::byte* block, Halves halves, std::uint32_t e) {
  using Fields = Q5KFields;
  const ScaleAndMin sub = q4_scale_and_min(block + Fields::kScales, e / 32);
  const float scale = times(halves.d, sub.scale);
  const int q = bits4_of_block256(block + Fields::kQuants, e) +
                16 * high_bit_of_block256(block + Fields::kHigh, e);
  return times(scale, q) - times(halves.m, sub.min);
}

LEASEHOLD_HD inline float q6_k(const std::byte* block, Halves halves, std::uint32_t e) {
  using Fields = Q6KFields;
  const float scale = times(halves.d, read_int8(block + Fields::kScales + e / 16));
  const int four =
      read_byte(block + Fields::kQuants + e / 128 * 64 + e % 64) >> (e % 128 < 64 ? 0 : 4) & 15;
  return times(scale, (four | bits2_of_block256(block + Fields::kHigh, e) << 4) - 32);
}

}  // namespace leasehold::element
