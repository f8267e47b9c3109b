#include "tests/checks/perplexity/token_odds.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/random.hpp"
#include "tests/support/required.hpp"

namespace leasehold {
namespace {

/// Logits in [0, width).
std::vector<double> random_odds(std::uint64_t seed, double width, std::size_t n = 300) {
  std::vector<float> logits(n);
  for (std::size_t i = 0; i < n; ++i)
    logits[i] = static_cast<float>(width * static_cast<double>(random_at(seed, i) % 10'000) / 1e4);
  return log_probabilities(logits);
}

double sum_of(const std::vector<double>& log_p) {
  double sum = 0;
  for (const double one : log_p) sum += std::exp(one);
  return sum;
}

Errc error_of(const CodedOdds& coded) {
  const auto decoded = decode_odds(coded);
  REQUIRE_FALSE(decoded);
  return decoded.error().code;
}

}  // namespace

TEST_CASE("coded odds: codes keep each log probability within half a step, and decoded add to 1") {
  const auto log_p = random_odds(1, 12);
  const CodedOdds coded = encode_odds(log_p);
  const auto decoded = testing::required(decode_odds(coded));
  CHECK(sum_of(decoded) == Approx(1).epsilon(1e-12));
  for (std::size_t i = 0; i < log_p.size(); ++i)
    CHECK(std::abs(decoded[i] - log_p[i]) <= kCodeStep);
  CHECK(coded.scale <= static_cast<float>(kCodeStep));
}

TEST_CASE("coded odds: codes end 16 nats below the most probable token, as a clipped reference") {
  const auto log_p = random_odds(2, 40);
  const auto decoded = testing::required(decode_odds(encode_odds(log_p)));
  const auto clipped = clip_odds(log_p);
  const auto [least, most] = std::ranges::minmax(decoded);
  CHECK(most - least == Approx(kCodedNats).epsilon(1e-6));
  CHECK(std::ranges::max(clipped) - std::ranges::min(clipped) == Approx(kCodedNats));
  CHECK(sum_of(clipped) == Approx(1).epsilon(1e-12));
  // The same limit on both sides leaves the rounding only.
  CHECK(divergence(clipped, decoded) < kCodeStep * kCodeStep);
  CHECK(divergence(log_p, decoded) > divergence(clipped, decoded));
}

TEST_CASE("coded odds: at the floor, codes change a divergence by less than a twentieth") {
  const auto p = random_odds(3, 12);
  for (const double size : {1.0, 4.0}) {
    std::vector<double> near(p);
    for (std::size_t i = 0; i < near.size(); ++i)
      near[i] += size * 5e-3 * (static_cast<double>(random_at(4, i) % 1'000) / 500 - 1);
    const auto q = clip_odds(near);
    const double exact = divergence(p, q);
    REQUIRE(exact > kCodeFloorNats / 4);
    const double coded = divergence(p, testing::required(decode_odds(encode_odds(q))));
    const double bound = kCodeStep / 2 * std::sqrt(2 * exact) + kCodeStep * kCodeStep / 8;
    CHECK(std::abs(coded - exact) <= bound);
    if (exact >= kCodeFloorNats) CHECK(bound <= 0.051 * exact);
  }
}

TEST_CASE("coded odds: equal probabilities have the scale 0, which is read") {
  const std::vector<double> uniform(4, std::log(0.25));
  const CodedOdds coded = encode_odds(uniform);
  CHECK(coded.scale == 0);
  for (const double one : testing::required(decode_odds(coded)))
    CHECK(one == Approx(std::log(0.25)));
}

TEST_CASE("coded odds: numbers that codes cannot have are refused") {
  const CodedOdds good = encode_odds(random_odds(5, 10));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float scale : {-1e-4f, 3e-4f, nan}) {
    CodedOdds bad = good;
    bad.scale = scale;
    CHECK(error_of(bad) == Errc::FileCorrupt);
  }
  for (const float lowest : {1.0f, nan, -std::numeric_limits<float>::infinity()}) {
    CodedOdds bad = good;
    bad.lowest = lowest;
    CHECK(error_of(bad) == Errc::FileCorrupt);
  }
  CodedOdds heavy = good;
  heavy.lowest += 0.1f;
  CHECK(error_of(heavy) == Errc::FileCorrupt);
  CHECK(error_of({.scale = 0, .lowest = 0, .codes = {}}) == Errc::FileCorrupt);
}

}  // namespace leasehold
