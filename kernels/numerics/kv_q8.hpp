/// How keys and values are rounded to Q8_0 when a position is appended, and how they are read.
///
/// Each 32 elements of a head have a scale, which is stored as f16:
///   d     = f16(largest |x| / 127); NaN if an element is not finite
///   q[i]  = x[i] / d, limited to ±127, rounded half to even; 0 where d is 0 or NaN
///   value = float(q[i]) · d, which is exact: 7 bits times 11
///
/// Elements are divided by the stored scale. For a scale that is a normal f16, a value is at most
/// d/2 from x. A smaller scale may be up to half a subnormal step too small, so codes are limited
/// to ±127; a scale that rounds to 0 stores zeros. Attention uses the values as floats
/// (kernels/numerics/attention_order.hpp). A scale beyond f16 is infinity, and its values are NaN.
/// C++20-clean.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/host_device.hpp"
#include "kernels/numerics/int8_order.hpp"

namespace leasehold {

inline constexpr float kKvLargestCode = 127.0F;

/// The stored scale of a block, from the bits of its largest |x|.
LEASEHOLD_HD inline Half kv_scale(std::uint32_t largest_bits) {
  return f16_from_f32(int8_scale(largest_bits));
}

/// Precondition: d, the stored scale as a float, is neither 0 nor NaN.
LEASEHOLD_HD inline std::int8_t kv_code(float x, float d) {
  const float ratio = x / d;
  const float above = ratio < -kKvLargestCode ? -kKvLargestCode : ratio;
  return static_cast<std::int8_t>(
      rounded_half_even(above > kKvLargestCode ? kKvLargestCode : above));
}

LEASEHOLD_HD inline float kv_value(std::int8_t q, float d) {
  return static_cast<float>(q) * d;
}

/// Rounds one position of a head. Its n elements are a multiple of kMinInt8Block.
inline void round_kv(const float* x, std::size_t n, std::int8_t* q, Half* scales) {
  for (std::size_t b = 0; b < n / kMinInt8Block; ++b) {
    std::uint32_t largest = 0;
    for (std::size_t i = b * kMinInt8Block; i < (b + 1) * kMinInt8Block; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFF);
    scales[b] = kv_scale(largest);
    const float d = f32_from_f16(scales[b]);
    for (std::size_t i = b * kMinInt8Block; i < (b + 1) * kMinInt8Block; ++i)
      q[i] = d > 0 ? kv_code(x[i], d) : std::int8_t{0};
  }
}

}  // namespace leasehold
