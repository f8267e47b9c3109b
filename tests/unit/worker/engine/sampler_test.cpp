#include "worker/engine/sampler.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace leasehold {

TEST_CASE("sampler: greedy takes the lowest id among the largest logits") {
  REQUIRE(sample(std::array{1.0f, 3.0f, 3.0f, 2.0f}, {}, 0) == 1);
  REQUIRE(sample(std::array{-5.0f, -4.0f}, {}, 0) == 1);
  REQUIRE(sample(std::array{-0.0f, 0.0f}, {}, 0) == 0);
}

TEST_CASE("sampler: a logit that is no number is NumericFault, whatever the temperature") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), inf, -inf}) {
    for (const float temperature : {0.0f, 1.0f}) {
      const auto drawn = sample(std::array{1.0f, bad}, {.temperature = temperature}, 0);
      REQUIRE(drawn.error().code == Errc::NumericFault);
    }
  }
}

TEST_CASE("sampler: chance depends on seed and position only") {
  const std::array logits{0.0f, 0.5f, 1.0f, 0.2f};
  const SamplingParams params{.temperature = 1.0f, .seed = 42};
  std::vector<TokenId> drawn;
  for (std::uint32_t position = 0; position < 12; ++position) {
    drawn.push_back(*sample(logits, params, position));
    REQUIRE(sample(logits, params, position) == drawn.back());
  }
  REQUIRE(drawn == std::vector<TokenId>{2, 1, 1, 1, 0, 3, 1, 2, 1, 2, 1, 2});
}

TEST_CASE("sampler: tokens come as often as softmax says") {
  const std::array logits{0.0f, std::log(2.0f), std::log(5.0f)};  // 1 : 2 : 5
  std::array<int, 3> counts{};
  for (std::uint32_t position = 0; position < 8000; ++position) {
    ++counts[static_cast<std::size_t>(*sample(logits, {.temperature = 1.0f, .seed = 5}, position))];
  }
  REQUIRE(std::abs(counts[0] - 1000) < 120);  // four standard deviations
  REQUIRE(std::abs(counts[1] - 2000) < 160);
  REQUIRE(std::abs(counts[2] - 5000) < 180);
}

TEST_CASE("sampler: a temperature near zero is greedy, a vast one is even") {
  const std::array logits{1.0f, 2.0f, 1.5f};
  std::array<int, 3> counts{};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    REQUIRE(sample(logits, {.temperature = 1e-30f, .seed = seed}, 0) == 1);
    ++counts[static_cast<std::size_t>(*sample(logits, {.temperature = 1e30f, .seed = seed}, 0))];
  }
  for (const int count : counts) REQUIRE(std::abs(count - 100) < 40);
}

}  // namespace leasehold
