#include "kernels/numerics/rope.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/expects.hpp"
#include "kernels/numerics/log.hpp"

namespace leasehold {
namespace {

// 1.5·2⁵²: adding it leaves the nearest integer in the low bits of the sum.
constexpr double kRound = 0x1.8p52;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;  // π/2 = high + low
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2High = 0x1.62e42fefa39efp-1;  // ln 2 = high + low
constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;

// A Taylor series: Σ terms[k]·x^k by fma from the last term. The terms are ±1/n!.
template <int kTerms>
double horner(const double (&terms)[kTerms], double x) {
  double sum = terms[kTerms - 1];
  for (int k = kTerms - 2; k >= 0; --k) sum = std::fma(sum, x, terms[k]);
  return sum;
}

// Polynomials in x² on [-π/4, π/4]; the first omitted terms are below 5e-17.
constexpr double kSine[] = {1.0,
                            -1.0 / 6,
                            1.0 / 120,
                            -1.0 / 5040,
                            1.0 / 362'880,
                            -1.0 / 39'916'800,
                            1.0 / 6'227'020'800.0,
                            -1.0 / 1'307'674'368'000.0};
constexpr double kCosine[] = {1.0,
                              -1.0 / 2,
                              1.0 / 24,
                              -1.0 / 720,
                              1.0 / 40'320,
                              -1.0 / 3'628'800,
                              1.0 / 479'001'600,
                              -1.0 / 87'178'291'200.0,
                              1.0 / 20'922'789'888'000.0};

// e^x for |x| < 700.
double exponential(double x) {
  const double shifted = std::fma(x, kLog2E, kRound);
  const double n = shifted - kRound;
  const double r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  double sum = 1.0;  // Horner form of the Taylor series: 1 + r/1·(1 + r/2·(1 + …))
  for (int k = 15; k >= 1; --k) sum = std::fma(sum, r / k, 1.0);
  const auto whole = static_cast<std::int64_t>(n);
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(whole + 1023) << 52);
}

}  // namespace

SinCos sin_cos(double angle) {
  const double shifted = std::fma(angle, kTwoOverPi, kRound);
  const double quarter_turns = shifted - kRound;
  const double r =
      std::fma(quarter_turns, -kHalfPiLow, std::fma(quarter_turns, -kHalfPiHigh, angle));
  const auto sine = static_cast<float>(r * horner(kSine, r * r));
  const auto cosine = static_cast<float>(horner(kCosine, r * r));
  switch (std::bit_cast<std::uint64_t>(shifted) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

std::vector<double> rope_frequencies(std::uint32_t rope_dim, double base) {
  expects(rope_dim % 2 == 0, "rope_dim is even");
  expects(base > 0.0, "the rope base is positive");
  const double log_base = log_f64(base);
  std::vector<double> frequencies(rope_dim / 2);
  for (std::uint32_t i = 0; i < rope_dim / 2; ++i)
    frequencies[i] = exponential(-2.0 * i / rope_dim * log_base);
  return frequencies;
}

RopeAngles yarn_angles(const YarnScaling& scaling) {
  expects(scaling.factor > 1.0 && scaling.original_context > 0, "a context is stretched");
  // The fractional index of the pair that makes `turns` turns over the original context.
  const auto pair_rotating = [&](double turns) {
    const double turn_length = scaling.original_context / (turns * 4.0 * kHalfPiHigh);
    return scaling.rope_dim * log_f64(turn_length) / (2.0 * log_f64(scaling.base));
  };
  constexpr double kMinSpan = 0.001;
  const double kept_until = std::max(0.0, std::floor(pair_rotating(scaling.beta_fast)));
  const double divided_from =
      std::min(scaling.rope_dim - 1.0, std::ceil(pair_rotating(scaling.beta_slow)));
  const double span = std::max(kMinSpan, divided_from - kept_until);
  RopeAngles angles{.frequencies = rope_frequencies(scaling.rope_dim, scaling.base)};
  for (std::size_t i = 0; i < angles.frequencies.size(); ++i) {
    const double along = std::clamp((static_cast<double>(i) - kept_until) / span, 0.0, 1.0);
    const double kept = (1.0 - along) * scaling.extrapolation;
    const double divided = along + (1.0 - along) * (1.0 - scaling.extrapolation);
    angles.frequencies[i] *= kept + divided / scaling.factor;
  }
  if (scaling.extrapolation == 0.0) return angles;  // linear: lengths stay
  const double log_factor = log_f64(scaling.factor);
  angles.magnitude = static_cast<float>(std::fma(0.1, log_factor, 1.0) /
                                        std::fma(0.1 * scaling.log_multiplier, log_factor, 1.0));
  return angles;
}

void fill_rope_cos_sin(std::span<const RowRef> rows, const RopeAngles& angles, float* cos_sin) {
  for (const RowRef& row : rows)
    for (const double frequency : angles.frequencies) {
      const SinCos turned = sin_cos(row.position * frequency);
      *cos_sin++ = turned.cos * angles.magnitude;
      *cos_sin++ = turned.sin * angles.magnitude;
    }
}

void fill_query_scales(std::span<const RowRef> rows, const QueryTemperature& temperature,
                       float* scales) {
  for (const RowRef& row : rows) {
    const double steps = 1.0 + row.position / temperature.step;
    *scales++ = static_cast<float>(std::fma(temperature.growth, log_f64(steps), 1.0));
  }
}

}  // namespace leasehold
