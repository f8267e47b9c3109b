// Every set of passes gives the results of the plain one, for rows of any length.
#include "worker/text/sampling/row_scans.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "common/random.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kLengths[] = {0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 200, 1000};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(SeededRandom& random, std::size_t n) {
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.below(40)) - 30.0F;
  return values;
}

/// Zeros, small weights and the largest, 2^30.
std::vector<std::uint32_t> random_weights(SeededRandom& random, std::size_t n) {
  std::vector<std::uint32_t> weights(n);
  for (std::uint32_t& weight : weights)
    weight = static_cast<std::uint32_t>((std::uint64_t{1} << random.below(31)) - random.below(2));
  return weights;
}

}  // namespace

TEST_CASE("row scans: the largest logit and its index are those of the plain loops") {
  SeededRandom random(1);
  for (const std::size_t n : kLengths)
    for (int round = 0; round < 20; ++round) {
      std::vector<float> values = random_logits(random, n);
      if (round % 4 == 0) std::fill(values.begin(), values.end(), -kInfinity);
      CAPTURE(n, round);
      const float highest = row_scans().highest(values);
      REQUIRE(highest == plain_row_scans().highest(values));
      REQUIRE(row_scans().find(values, highest) == plain_row_scans().find(values, highest));
      REQUIRE(row_scans().find(values, 1e9F) == n);
    }
}

TEST_CASE("row scans: one infinity or NaN anywhere is found") {
  SeededRandom random(2);
  for (const std::size_t n : kLengths) {
    std::vector<float> values = random_logits(random, n);
    REQUIRE(row_scans().all_finite(values));
    for (std::size_t i = 0; i < n; ++i)
      for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        const float good = values[i];
        values[i] = bad;
        CAPTURE(n, i, bad);
        REQUIRE_FALSE(row_scans().all_finite(values));
        REQUIRE_FALSE(plain_row_scans().all_finite(values));
        values[i] = good;
      }
  }
}

TEST_CASE("row scans: weights at or above any threshold are counted, summed and marked") {
  SeededRandom random(3);
  for (const std::size_t n : kLengths) {
    const std::vector<std::uint32_t> weights = random_weights(random, n);
    for (std::uint32_t bit = 0; bit < 32; ++bit)
      for (const std::uint32_t threshold : {1u << bit, (1u << bit) + 1}) {
        CAPTURE(n, threshold);
        REQUIRE(row_scans().at_least(weights, threshold) ==
                plain_row_scans().at_least(weights, threshold));
        for (std::size_t from = 0; from < n; from += 1 + random.below(64))
          REQUIRE(row_scans().mask_at_least(weights, threshold, from) ==
                  plain_row_scans().mask_at_least(weights, threshold, from));
      }
  }
}

}  // namespace leasehold::testing
