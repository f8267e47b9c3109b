/// ln x from our own series: libm selects variants by CPU, so its bits differ.
///
///   x = m·2^e, m in [√½, √2)    s = (m - 1)/(m + 1)
///   ln x = e·ln2 + 2·(s + s³/3 + s⁵/5 + … + s²⁷/27)
///
/// |s| ≤ 0.1716, so the rest of the series is below 1e-21. ln 2 is the sum of two doubles. Error:
/// below 3e-16 absolute plus 2e-16 of the result. Domain: positive normal numbers. The code only
/// adds, subtracts, divides and uses fma, in the order written here.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/numerics/host_device.hpp"

namespace leasehold {

LEASEHOLD_HD inline double log_f64(double x) {
  constexpr double kLn2High = 0x1.62e42fefa39efp-1;
  constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;
  // The subtraction moves the cut from 1 to √½, so m is in [√½, √2).
  constexpr std::uint64_t kSqrtHalf = 0x3FE6'A09E'667F'3BCD;
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  const auto exponent = static_cast<std::int64_t>(bits - kSqrtHalf) >> 52;
  const double m = __builtin_bit_cast(double, bits - (static_cast<std::uint64_t>(exponent) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  double series = 0.0;
  for (int k = 13; k >= 0; --k) series = std::fma(series, s * s, 1.0 / (2 * k + 1));
  const auto e = static_cast<double>(exponent);
  return std::fma(e, kLn2High, std::fma(e, kLn2Low, 2.0 * s * series));
}

}  // namespace leasehold
