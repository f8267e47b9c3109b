/// ln x from our own series: libm selects variants by CPU, so its bits differ.
///
///   x = m·2^e, m in [√½, √2)    t = (m - 1)/(m + 1)
///   ln x = e·ln2 + 2·(t + t³/3 + t⁵/5 + … + t²¹/21)
///
/// |t| ≤ 0.1716, so the rest of the series is below 2e-19. Error: below 3e-16 absolute plus 2e-16
/// of the result. Domain: positive normal numbers. The code only adds, multiplies and divides, in
/// the order written here.
#pragma once

#include <cstdint>

#include "kernels/numerics/host_device.hpp"

namespace leasehold {

LEASEHOLD_HD inline double log_f64(double x) {
  constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  auto exponent = static_cast<std::int32_t>(bits >> 52) - 1022;
  double m = __builtin_bit_cast(double, (bits & 0x000f'ffff'ffff'ffff) | 0x3fe0'0000'0000'0000);
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1);
  const double square = t * t;
  double series = 1.0 / 21;
  for (int k = 19; k > 0; k -= 2) series = series * square + 1.0 / k;
  return exponent * kLn2 + 2 * t * series;
}

}  // namespace leasehold
