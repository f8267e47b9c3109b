/// Compares the device's candidates with a plain sort of the logits.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cuda/plan/step_plan.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kUntouchedKey = 7777;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Indices of a row, descending by logit; of equal logits the lower index comes first.
std::vector<std::uint32_t> sorted(const float* logits, std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order,
                           [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  return order;
}

/// One logit row per row of a step, and one more that the step does not have.
struct LogitCase {
  LogitCase(std::vector<float> logits_, std::uint32_t n_vocab_)
      : logits(std::move(logits_)),
        n_vocab(n_vocab_),
        n_rows(static_cast<std::uint32_t>(logits.size() / n_vocab)),
        step(rows_of({n_rows}, {n_rows})) {
    step.step.n_logit_rows = n_rows;
  }

  /// With one part per row, and with several, whose blocks run in other orders.
  void check_candidates(std::uint32_t k, std::uint64_t seed = 0) {
    for (const std::uint32_t n_parts : {1u, 3u, 8u, device::kMaxLogitParts})
      check_parts(k, n_parts, n_parts == 1 ? seed : test_seed() * 100 + seed + n_parts);
  }

  void check_parts(std::uint32_t k, std::uint32_t n_parts, std::uint64_t seed) {
    std::vector<device::Candidate> out((n_rows + 1) * k, {7777, 0.5F});
    std::vector<std::uint32_t> has_nonfinite(n_rows + 1, 7);
    const std::size_t n_keys = std::size_t{n_rows} * n_parts * k;
    std::vector<std::uint64_t> part_keys(n_keys + 1, kUntouchedKey);
    std::vector<std::uint32_t> counters(n_rows + 1, 0);
    counters.back() = 7;
    const cuda::KernelLaunch launch =
        cuda::plan_top_candidates({.gate = step.plan().gate,
                                   .logits = logits.data(),
                                   .out = out.data(),
                                   .has_nonfinite = has_nonfinite.data(),
                                   .part_keys = part_keys.data(),
                                   .counters = counters.data(),
                                   .n_vocab = n_vocab,
                                   .k = k},
                                  n_rows + 1, n_parts);
    REQUIRE(launch.grid == cuda::GridSize{.x = n_rows + 1, .y = n_parts, .z = 1});
    step.run(launch, seed);
    REQUIRE(part_keys.back() == kUntouchedKey);
    REQUIRE(counters.back() == 7);
    REQUIRE(std::all_of(counters.begin(), counters.end() - 1,
                        [](std::uint32_t counter) { return counter == 0; }));
    REQUIRE(has_nonfinite.back() == 7);
    REQUIRE(out.back().token == 7777);
    for (std::uint32_t r = 0; r < n_rows; ++r) {
      CAPTURE(r, k, n_vocab, n_parts, seed);
      const float* row = logits.data() + std::size_t{r} * n_vocab;
      REQUIRE(
          has_nonfinite[r] ==
          (std::all_of(row, row + n_vocab, [](float x) { return std::isfinite(x); }) ? 0u : 1u));
      const auto expected = sorted(row, n_vocab);
      for (std::uint32_t i = 0; i < k && has_nonfinite[r] == 0; ++i) {
        const device::Candidate got = out[r * k + i];
        REQUIRE(got.token == (i < n_vocab ? expected[i] : device::kNoToken));
        if (i < n_vocab) REQUIRE(got.logit == row[expected[i]]);
      }
    }
  }

  std::vector<float> logits;
  std::uint32_t n_vocab;
  std::uint32_t n_rows;
  DeviceStep step;
};

/// A few distinct values, so that many logits are equal, including zeros of both signs.
std::vector<float> coarse(SeededRandom& random, std::size_t n, std::uint32_t values) {
  std::vector<float> all(n);
  for (float& x : all) {
    x = static_cast<float>(random.below(values)) - static_cast<float>(values - 1);
    if (x == 0.0F && random.below(2) == 0) x = -0.0F;
  }
  return all;
}

}  // namespace

TEST_CASE("cuda: a logit that is not finite is a fault of its row alone") {
  for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")}) {
    SeededRandom random(test_seed());
    LogitCase c(random_floats(random, 3 * 700), 700);
    c.logits[700 + 655] = bad;
    c.check_candidates(5);
  }
}

TEST_CASE("cuda: the candidates are the first k of a plain sort, even with equal logits") {
  SeededRandom random(test_seed());
  for (const std::uint32_t n_vocab : {3u, 40u, 513u, 5000u})
    for (const std::uint32_t values : {1u, 3u, 2000u, 100000u})
      for (const std::uint32_t k : {1u, 20u, 64u}) {
        LogitCase c(coarse(random, std::size_t{2} * n_vocab, values), n_vocab);
        c.check_candidates(k, values % 7);
      }
}

TEST_CASE("cuda: candidates are found even if one thread scans all of them") {
  SeededRandom random(test_seed());
  auto logits = random_floats(random, 40000);
  for (std::size_t i = 0; i < 70; ++i) logits[i * 512 + 3] = 10.0F + static_cast<float>(i % 9);
  LogitCase c(std::move(logits), 40000);
  c.check_candidates(64);
}

TEST_CASE("cuda: candidates are found even if more logits than fit exceed the 64th thread's best") {
  SeededRandom random(test_seed());
  auto logits = random_floats(random, 40000);
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (i % 512 < 63) logits[i] += 10.0F;
  LogitCase c(std::move(logits), 40000);
  c.check_candidates(64);
}

TEST_CASE("cuda: candidates are found even if most logits are equal") {
  SeededRandom random(test_seed());
  std::vector<float> logits(5000, 2.0F);
  for (std::size_t i = 0; i < 10; ++i) logits[random.below(5000)] = 3.0F;
  LogitCase c(std::move(logits), 5000);
  c.check_candidates(33);
}

TEST_CASE("cuda: few rows of many logits have several parts, short rows and many rows have one") {
  // Two blocks per SM, at most 16 parts of at least 4096 logits.
  CHECK(cuda::logit_parts(1, 151'936, 132) == 16);
  CHECK(cuda::logit_parts(64, 151'936, 132) == 4);
  CHECK(cuda::logit_parts(300, 151'936, 132) == 1);
  CHECK(cuda::logit_parts(1, 32'000, 132) == 8);
  CHECK(cuda::logit_parts(1, 300, 132) == 1);
  CHECK(cuda::logit_parts(1, 151'936, 1) == 2);
  CHECK(cuda::logit_parts(0, 0, 132) == 1);
}

}  // namespace leasehold::testing
