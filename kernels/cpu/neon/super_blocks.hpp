/// Blocks of 256: their sub-blocks' scales and minima in registers, for the four rows of a quarter
/// of a group.
#pragma once

#include "kernels/cpu/neon/strips.hpp"

namespace leasehold::neon {

/// Byte 4·row + i of register j is number 4j + i.
struct SubBlocks {
  int8x16_t scales[4];
  int8x16_t minima[4];  ///< Only for types with minima.
};

/// The upper two bits of numbers 4·quad … 4·quad + 3 of each row, in bits 4 and 5 of its bytes.
/// Byte `quad` of the two bytes per row in `rows` has the bits (IQ4_XS).
inline uint8x16_t upper_bits_of(uint8x8_t rows, std::uint8_t quad) {
  static constexpr std::uint8_t kRowOf[16] = {0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6};
  static constexpr std::int8_t kPlaces[16] = {0, -2, -4, -6, 0, -2, -4, -6,
                                              0, -2, -4, -6, 0, -2, -4, -6};
  const uint8x16_t bytes =
      vqtbl1q_u8(vcombine_u8(rows, rows), vaddq_u8(vld1q_u8(kRowOf), vdupq_n_u8(quad)));
  return vshlq_n_u8(vandq_u8(vshlq_u8(bytes, vld1q_s8(kPlaces)), vdupq_n_u8(3)), 4);
}

/// Loads the numbers of a quarter of a block.
template <TensorType kType>
SubBlocks load_sub_blocks(const std::byte* block, std::uint32_t quarter) {
  const std::byte* all = block + group_format(kType).sub_scales_at();
  const std::byte* numbers = all + quarter * kQuarterPlane;
  uint8x16_t codes[4] = {};
  if constexpr (kType == TensorType::IQ4_XS) {
    const uint8x8_t rows = vld1_u8(reinterpret_cast<const std::uint8_t*>(all) + kPlaneBytes +
                                   std::size_t{quarter} * kQuarterRows * 2);
    codes[0] = vorrq_u8(codes_of<4, 0, 0>(numbers, codes[0]), upper_bits_of(rows, 0));
    codes[1] = vorrq_u8(codes_of<4, 0, 1>(numbers, codes[1]), upper_bits_of(rows, 1));
  } else if constexpr (group_format(kType).sub_scale_bits == 6)
    load_strip<4, 2>(numbers, numbers + 2 * std::size_t{kPlaneBytes}, 0, codes);
  else
    load_strip<8, 0>(numbers, numbers, 0, codes);
  SubBlocks sub;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    uint8x16_t scales = codes[i];
    if constexpr (kType == TensorType::Q3_K || kType == TensorType::IQ4_XS)
      scales = vsubq_u8(scales, vdupq_n_u8(32));
    if constexpr (kType == TensorType::Q2_K) scales = vandq_u8(scales, vdupq_n_u8(15));
    sub.scales[i] = vreinterpretq_s8_u8(scales);
    sub.minima[i] = vreinterpretq_s8_u8(kType == TensorType::Q2_K ? vshrq_n_u8(codes[i], 4)
                                                                  : codes[(i + 2) % 4]);
  }
  return sub;
}

/// Number n of each row, as 32 bits.
inline int32x4_t number_of(const int8x16_t (&numbers)[4], std::uint32_t n) {
  const int32x4_t places = vdupq_n_s32(static_cast<std::int32_t>(24 - n % 4 * 8));
  return vshrq_n_s32(vshlq_s32(vreinterpretq_s32_s8(numbers[n / 4]), places), 24);
}

}  // namespace leasehold::neon
