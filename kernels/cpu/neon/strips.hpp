/// The loads of int8 dots for a quarter of a group: sixteen bytes of a plane have four bytes of
/// each of four rows (kernels/quant/group_format.hpp). Pointers to codes point to the quarter's
/// first byte of a plane.
#pragma once

#include <arm_neon.h>

#include "kernels/quant/block_bytes.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold::neon {

inline constexpr std::uint32_t kQuarters = 4;
inline constexpr std::uint32_t kQuarterRows = kGroupRows / kQuarters;
inline constexpr std::size_t kQuarterPlane = kPlaneBytes / kQuarters;

inline uint8x16_t load_bytes(const std::byte* from) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(from));
}

/// Shifts each byte to the right.
template <int kShift>
uint8x16_t shift_right(uint8x16_t bytes) {
  if constexpr (kShift == 0) return bytes;
  return vshrq_n_u8(bytes, kShift == 0 ? 1 : kShift);
}

/// The codes of four elements per row of a strip. `low` points to the strip's planes of kLow bits.
/// `high` has the strip's upper kHigh bits in the lowest places of each byte.
template <int kLow, int kHigh, int kQuad>
uint8x16_t codes_of(const std::byte* low, uint8x16_t high) {
  constexpr int kPerPlane = 8 / kLow;
  const uint8x16_t plane = load_bytes(low + kQuad / kPerPlane * kPlaneBytes);
  if constexpr (kLow == 8) return plane;
  const uint8x16_t codes =
      vandq_u8(shift_right<kQuad % kPerPlane * kLow>(plane), vdupq_n_u8((1 << kLow) - 1));
  if constexpr (kHigh == 0) return codes;
  const uint8x16_t bits = vandq_u8(shift_right<kQuad * kHigh>(high), vdupq_n_u8((1 << kHigh) - 1));
  return vorrq_u8(codes, vshlq_n_u8(bits, kLow % 8));
}

/// Loads the argument `high` of codes_of: the upper bits of a strip, or zero if kHigh is 0.
template <int kHigh>
uint8x16_t load_upper(const std::byte* high, std::uint32_t strip) {
  if constexpr (kHigh == 2) return load_bytes(high + strip * kPlaneBytes);
  if constexpr (kHigh == 1)  // a plane has two strips
    return vshlq_u8(load_bytes(high + strip / 2 * kPlaneBytes),
                    vdupq_n_s8(static_cast<std::int8_t>(strip % 2 * -4)));
  return vdupq_n_u8(0);
}

/// Loads strip `strip` of planes with kLow and kHigh bits per element.
template <int kLow, int kHigh>
void load_strip(const std::byte* low, const std::byte* high, std::uint32_t strip,
                uint8x16_t (&codes)[4]) {
  low += strip * (kLow / 2) * kPlaneBytes;
  const uint8x16_t upper = load_upper<kHigh>(high, strip);
  codes[0] = codes_of<kLow, kHigh, 0>(low, upper);
  codes[1] = codes_of<kLow, kHigh, 1>(low, upper);
  codes[2] = codes_of<kLow, kHigh, 2>(low, upper);
  codes[3] = codes_of<kLow, kHigh, 3>(low, upper);
}

/// Loads the elements of strip `strip` of a quarter of a block. Without its offset, every element
/// fits a signed byte.
template <TensorType kType>
void load_elements(const std::byte* quarter, std::uint32_t strip, int8x16_t (&elements)[4]) {
  constexpr GroupFormat kFormat = group_format(kType);
  uint8x16_t codes[4];
  load_strip<kFormat.low_bits, kFormat.high_bits>(quarter + kFormat.low_at(),
                                                  quarter + kFormat.high_at(), strip, codes);
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) {
    if constexpr (kFormat.table != CodeTable::None) {
      static constexpr CodeValues kValues = code_values(kFormat.table);
      codes[quad] = vqtbl1q_u8(vld1q_u8(kValues.of), codes[quad]);
    }
    if constexpr (kFormat.offset != 0)
      codes[quad] = vsubq_u8(codes[quad], vdupq_n_u8(kFormat.offset));
    elements[quad] = vreinterpretq_s8_u8(codes[quad]);
  }
}

/// Four halves as floats, exactly.
inline float32x4_t load_halves(const std::byte* from) {
  const uint16x4_t bits = vreinterpret_u16_u8(vld1_u8(reinterpret_cast<const std::uint8_t*>(from)));
  return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

/// The scales of a quarter of a block.
template <TensorType kType>
float32x4_t load_scales(const std::byte* block, std::uint32_t quarter) {
  if constexpr (group_format(kType).scale_bytes == 2)
    return load_halves(block + std::size_t{quarter} * kQuarterRows * 2);
  float scales[kQuarterRows];
  for (std::uint32_t row = 0; row < kQuarterRows; ++row)
    scales[row] =
        half_power_of_two(static_cast<std::uint32_t>(block[quarter * kQuarterRows + row]));
  return vld1q_f32(scales);
}

}  // namespace leasehold::neon
