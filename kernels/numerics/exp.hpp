/// e^x and silu from our own polynomial: libm selects variants by CPU, so its bits differ.
///
///   x = n·ln2 + r, |r| ≤ ln2/2        e^x = 2^n · Taylor₇(r)
///
/// The remainder of the Taylor series is below 6e-9, a tenth of an ulp. Error: below 1.5 ulp over
/// the whole range, subnormal results included. Exactly 0 below -104, exactly 1 at ±0, infinite
/// above 88.73; NaN stays NaN. The SIMD paths do the same operations, eight at a time.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/numerics/host_device.hpp"

namespace leasehold {
namespace exp_order {

inline constexpr float kMaxInput = 89.0F;    ///< e^89 overflows in the last product.
inline constexpr float kMinInput = -104.0F;  ///< e^-104 rounds to 0 in the last product.
inline constexpr float kLog2E = 0x1.715476p+0F;
inline constexpr float kLn2High = 0x1.62e43p-1F;  ///< ln 2 = high + low; high is the nearest float
inline constexpr float kLn2Low = -0x1.05c61p-29F;
/// 1.5·2²³: adding it leaves the nearest integer in the low bits of the sum.
inline constexpr float kRound = 0x1.8p23F;
/// 1/k! from k = 7 down to 0.
inline constexpr float kTaylor[] = {1.0F / 5040, 1.0F / 720, 1.0F / 120, 1.0F / 24,
                                    1.0F / 6,    1.0F / 2,   1.0F,       1.0F};

/// 2^k. The result is garbage for a k out of range, which only a NaN produces.
LEASEHOLD_HD inline float power_of_two(std::int32_t k) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(k + 127) << 23);
}

}  // namespace exp_order

LEASEHOLD_HD inline float exp_f32(float x) {
  namespace e = exp_order;
  const float above = x > e::kMaxInput ? e::kMaxInput : x;  // a NaN passes both comparisons
  const float in_range = above < e::kMinInput ? e::kMinInput : above;
  const float shifted = std::fma(in_range, e::kLog2E, e::kRound);
  const float n = shifted - e::kRound;
  const float r = std::fma(n, -e::kLn2Low, std::fma(n, -e::kLn2High, in_range));
  // Unrolled by hand: device code can use a host constant, but not a host array.
  float p = std::fma(1.0F / 5040, r, 1.0F / 720);
  p = std::fma(p, r, 1.0F / 120);
  p = std::fma(p, r, 1.0F / 24);
  p = std::fma(p, r, 1.0F / 6);
  p = std::fma(p, r, 1.0F / 2);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  const std::int32_t whole =
      __builtin_bit_cast(std::int32_t, shifted) - __builtin_bit_cast(std::int32_t, e::kRound);
  // Two steps, so that 2^128 and subnormal results need no special case.
  const std::int32_t half = whole >> 1;
  return p * e::power_of_two(half) * e::power_of_two(whole - half);
}

LEASEHOLD_HD inline float sigmoid(float x) {
  return 1.0F / (1.0F + exp_f32(-x));
}

/// x · sigmoid(x) (Elfwing et al. 2017).
LEASEHOLD_HD inline float silu(float x) {
  return x / (1.0F + exp_f32(-x));
}

}  // namespace leasehold
