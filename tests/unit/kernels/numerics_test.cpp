/// Compares our exp, sine and cosine with long double libm, and tests the written order itself.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "common/random.hpp"
#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold {
namespace {

/// The error in units of the last place of the float nearest to `exact`.
double ulps(float got, long double exact) {
  const auto nearest = static_cast<float>(std::abs(exact));
  const long double ulp =
      std::max(std::nextafter(nearest, INFINITY) - static_cast<long double>(nearest),
               static_cast<long double>(0x1p-149F));
  return static_cast<double>(std::abs(got - exact) / ulp);
}

float random_in(SeededRandom& random, float low, float high) {
  return low + (high - low) * (static_cast<float>(random.below(1u << 24)) * 0x1p-24F);
}

}  // namespace

TEST_CASE("exp: within 1.5 ulp from the first subnormal result to the last finite one") {
  SeededRandom random(1);
  double worst = 0;
  for (int i = 0; i < 400'000; ++i) {
    const float x = i % 2 == 0 ? random_in(random, -104.0F, 88.7F) : random_in(random, -2.0F, 2.0F);
    worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<long double>(x))));
  }
  CAPTURE(worst);
  REQUIRE(worst < 1.5);
}

TEST_CASE("exp: exact at the ends, and a NaN stays a NaN") {
  REQUIRE(exp_f32(0.0F) == 1.0F);
  REQUIRE(exp_f32(-0.0F) == 1.0F);
  REQUIRE(exp_f32(-104.0F) == 0.0F);
  REQUIRE(exp_f32(-INFINITY) == 0.0F);
  REQUIRE(exp_f32(-103.9F) == 0x1p-149F);
  REQUIRE(std::isfinite(exp_f32(88.72283F)));
  REQUIRE(exp_f32(88.72284F) == INFINITY);
  REQUIRE(exp_f32(INFINITY) == INFINITY);
  REQUIRE(std::isnan(exp_f32(NAN)));
  REQUIRE(std::isnan(exp_f32(-NAN)));
}

TEST_CASE("sin_cos: within 0.501 ulp of the angle's own sine and cosine, up to position 131072") {
  SeededRandom random(2);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double angle = i % 4 == 0 ? static_cast<double>(random.below(131'073))
                                    : static_cast<double>(random()) * 0x1p-64 * 131'072.0;
    const SinCos got = sin_cos(angle);
    worst = std::max(worst, ulps(got.sin, std::sin(static_cast<long double>(angle))));
    worst = std::max(worst, ulps(got.cos, std::cos(static_cast<long double>(angle))));
  }
  CAPTURE(worst);
  REQUIRE(worst < 0.501);
  REQUIRE(sin_cos(0.0).sin == 0.0F);
  REQUIRE(sin_cos(0.0).cos == 1.0F);
}

TEST_CASE("rope frequencies: base to the power -2i/dim, to 4e-15 of the value") {
  for (const double base : {10'000.0, 500'000.0, 1'000'000.0, 5e6, 1.0, 0.5}) {
    for (const std::uint32_t rope_dim : {2u, 8u, 64u, 96u, 128u, 256u}) {
      const auto frequencies = rope_frequencies(rope_dim, base);
      REQUIRE(frequencies.size() == rope_dim / 2);
      REQUIRE(frequencies[0] == 1.0);
      for (std::uint32_t i = 0; i < rope_dim / 2; ++i) {
        const long double exact = std::pow(static_cast<long double>(base),
                                           -2.0L * i / static_cast<long double>(rope_dim));
        CAPTURE(base, rope_dim, i);
        REQUIRE(std::abs(static_cast<double>((frequencies[i] - exact) / exact)) < 4e-15);
      }
    }
  }
}

TEST_CASE("rope table: each row has the cosines and sines of its position") {
  const std::vector<RowRef> rows{{0, 0}, {3, 131'071}, {1, 5}};
  for (const float magnitude : {1.0F, 1.25F}) {
    const RopeAngles angles{.frequencies = {1.0, 0.25}, .magnitude = magnitude};
    std::vector<float> table(rows.size() * 4);
    fill_rope_cos_sin(rows, angles, table.data());
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t i = 0; i < 2; ++i) {
        const double angle = rows[r].position * angles.frequencies[i];
        REQUIRE(table[r * 4 + 2 * i] == Approx(magnitude * std::cos(angle)).margin(2e-7));
        REQUIRE(table[r * 4 + 2 * i + 1] == Approx(magnitude * std::sin(angle)).margin(2e-7));
      }
  }
}

TEST_CASE("rope yarn: fast pairs keep their frequency, slow ones are divided, others are mixed") {
  // Qwen2.5's published values: heads of 128, base 1e6, 32768 positions times 4. Pair 23 is the
  // last with 32 turns (128 · ln(32768 / 64π) / 2 ln 1e6 = 23.6), pair 40 the first with less than
  // one (39.7).
  const RopeAngles yarn =
      yarn_angles({.base = 1e6, .rope_dim = 128, .factor = 4.0, .original_context = 32768});
  const auto plain = rope_frequencies(128, 1e6);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const double divided = i <= 23 ? 0.0 : i >= 40 ? 1.0 : (i - 23) / 17.0;
    CAPTURE(i);
    REQUIRE(yarn.frequencies[i] / plain[i] == Approx(1.0 - divided * 0.75).epsilon(1e-12));
  }
  REQUIRE(yarn.magnitude == Approx(1.1386294).epsilon(1e-6));
}

TEST_CASE("rope yarn: other numbers of turns move the limits, and extrapolation the kept share") {
  const YarnScaling scaling{.base = 1e6,
                            .rope_dim = 128,
                            .factor = 4.0,
                            .original_context = 32768,
                            .beta_fast = 64.0,
                            .beta_slow = 4.0,
                            .extrapolation = 0.5,
                            .log_multiplier = 2.0};
  const RopeAngles yarn = yarn_angles(scaling);
  const auto plain = rope_frequencies(128, 1e6);
  // 128 · ln(32768 / 128π) / 2 ln 1e6 = 20.4 and 128 · ln(32768 / 8π) / 2 ln 1e6 = 33.2.
  for (std::uint32_t i = 0; i < 64; ++i) {
    const double divided = i <= 20 ? 0.0 : i >= 34 ? 1.0 : (i - 20) / 14.0;
    const double kept = (1.0 - divided) * 0.5;
    CAPTURE(i);
    REQUIRE(yarn.frequencies[i] / plain[i] == Approx(kept + (1.0 - kept) / 4).epsilon(1e-12));
  }
  REQUIRE(yarn.magnitude == Approx(1.1386294 / 1.2772589).epsilon(1e-6));

  YarnScaling linear = scaling;
  linear.extrapolation = 0.0;
  const RopeAngles divided = yarn_angles(linear);
  for (std::uint32_t i = 0; i < 64; ++i)
    REQUIRE(divided.frequencies[i] / plain[i] == Approx(0.25).epsilon(1e-12));
  REQUIRE(divided.magnitude == 1.0F);
}

TEST_CASE("rope: the temperature of queries grows with the logarithm of their position") {
  const std::vector<RowRef> rows = {{0, 0}, {0, 31}, {1, 32}, {1, 70}, {1, 1'000'000}};
  std::vector<float> scales(rows.size());
  fill_query_scales(rows, {.growth = 0.3F, .step = 32}, scales.data());
  CHECK(scales[0] == 1.0F);
  CHECK(scales[1] == 1.0F);
  CHECK(scales[2] == Approx(1 + 0.3 * std::log(2)).epsilon(1e-6));
  CHECK(scales[3] == Approx(1 + 0.3 * std::log(3)).epsilon(1e-6));
  CHECK(scales[4] == Approx(1 + 0.3 * std::log(31251)).epsilon(1e-6));
}

TEST_CASE("rope pairs: neighbours if interleaved, half of rope_dim apart if halved") {
  float angles[16] = {};  // cos, sin: only pair 3 turns, by a quarter
  angles[7] = 1.0F;
  float neighbours[16] = {};
  neighbours[6] = 2.0F;
  neighbours[7] = 3.0F;
  rotate_pair(neighbours, RopeStyle::Interleaved, 3, 16, angles);
  REQUIRE(neighbours[6] == -3.0F);
  REQUIRE(neighbours[7] == 2.0F);
  float halves[16] = {};
  halves[3] = 2.0F;
  halves[11] = 3.0F;
  rotate_pair(halves, RopeStyle::Halves, 3, 16, angles);
  REQUIRE(halves[3] == -3.0F);
  REQUIRE(halves[11] == 2.0F);
}

TEST_CASE("written order: element i belongs to lane i mod 32, lanes fold in halves") {
  // 2²⁴ absorbs a 1 that is added later, so the sum shows the order of additions.
  float x[40] = {};
  x[0] = 0x1p24F;
  x[32] = 1.0F;  // same lane as x[0]: absorbed
  x[16] = 1.0F;  // first fold partner of lane 0: absorbed
  x[1] = 1.0F;   // meets lanes 3, 5 and 9 before lane 0 does: 4 in all
  x[3] = 1.0F;
  x[5] = 1.0F;
  x[9] = 1.0F;
  REQUIRE(ordered_sum(x, 40) == 0x1p24F + 4.0F);
  const std::vector<float> ones(40, 1.0F);
  REQUIRE(ordered_dot(x, ones.data(), 40) == 0x1p24F + 4.0F);
}

TEST_CASE("written order: a product is added to its lane with one rounding, not two") {
  const float a[33] = {0x1.000002p0F};
  float x[33] = {};
  float y[33] = {};
  x[0] = -1.0F;
  y[0] = 1.0F;
  x[32] = a[0];
  y[32] = 0x1.fffffep-1F;
  REQUIRE(ordered_dot(x, y, 33) == std::fma(x[32], y[32], -1.0F));
  REQUIRE(ordered_dot(x, y, 33) != x[32] * y[32] - 1.0F);
}

}  // namespace leasehold
