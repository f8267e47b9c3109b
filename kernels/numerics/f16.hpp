/// Half precision as bits (IEEE 754 binary16), converted exactly as F16C does it.
///
/// Every f16 has an f32 of the same value, so widening is exact; narrowing rounds to nearest even.
/// A NaN keeps its sign and the top of its payload and becomes quiet. C++20-clean.
#pragma once

#include <cstdint>

#include "kernels/numerics/host_device.hpp"

namespace leasehold {

using Half = std::uint16_t;

/// bfloat16: the upper 16 bits of a float.
struct Bfloat {
  std::uint16_t upper;
};

LEASEHOLD_HD constexpr float f32_from_f16(Half half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = half >> 10 & 0x1F;
  const std::uint32_t mantissa = half & 0x3FF;
  if (exponent == 0x1F) {
    const std::uint32_t quiet = mantissa != 0 ? 0x40'0000u : 0;
    return __builtin_bit_cast(float, sign | 0x7F80'0000u | quiet | mantissa << 13);
  }
  if (exponent != 0)
    return __builtin_bit_cast(float, sign | (exponent + 112) << 23 | mantissa << 13);
  // Zero or subnormal: mantissa · 2⁻²⁴ is exact.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

namespace f16_detail {

/// value / 2^shift to the nearest integer, ties to even. 0 < shift < 32.
LEASEHOLD_HD constexpr std::uint32_t shift_to_nearest_even(std::uint32_t value,
                                                           std::uint32_t shift) {
  const std::uint32_t kept = value >> shift;
  const std::uint32_t dropped = value & ((1u << shift) - 1);
  const std::uint32_t half = 1u << (shift - 1);
  return kept + (dropped > half || (dropped == half && (kept & 1) != 0) ? 1 : 0);
}

}  // namespace f16_detail

LEASEHOLD_HD constexpr Half f16_from_f32(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
  if (magnitude > 0x7F80'0000)  // NaN
    return static_cast<Half>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x4780'0000) return static_cast<Half>(sign | 0x7C00);  // 65536 and more
  if (magnitude >= 0x3880'0000) {                                         // normal: 2⁻¹⁴ and more
    // A mantissa that rounds up past its end carries into the exponent, up to infinity, as
    // intended.
    const std::uint32_t rebased = magnitude - (112u << 23);
    return static_cast<Half>(sign | f16_detail::shift_to_nearest_even(rebased, 13));
  }
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return static_cast<Half>(sign);  // below half of the smallest subnormal
  const std::uint32_t mantissa = (magnitude & 0x7F'FFFF) | 0x80'0000;
  return static_cast<Half>(sign | f16_detail::shift_to_nearest_even(mantissa, 126 - exponent));
}

LEASEHOLD_HD constexpr float f32_from_bf16(Bfloat value) {
  return __builtin_bit_cast(float, std::uint32_t{value.upper} << 16);
}

/// A stored element as a float, exactly.
LEASEHOLD_HD constexpr float as_float(float value) {
  return value;
}
LEASEHOLD_HD constexpr float as_float(Half value) {
  return f32_from_f16(value);
}
LEASEHOLD_HD constexpr float as_float(Bfloat value) {
  return f32_from_bf16(value);
}

}  // namespace leasehold
