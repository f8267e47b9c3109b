// CPU time of a draw; asserts nothing. Run: worker_sampling_test "[.speed]"
#include <fmt/format.h>

#include <ctime>

#include "common/random.hpp"
#include "tests/unit/worker/text/sampling/draw.hpp"

namespace leasehold::testing {
namespace {

/// Logits shaped like a model's: a few tokens far above a wide middle.
std::vector<float> model_like_logits(std::size_t n) {
  std::vector<float> logits(n);
  for (std::size_t i = 0; i < n; ++i) {
    float sum = 0.0f;
    for (std::uint64_t k = 0; k < 4; ++k) sum += random_unit_at(k, i);
    logits[i] = sum * 6.0f - 12.0f;
  }
  for (std::size_t i = 0; i < 40; ++i) logits[i * 700] += 12.0f - static_cast<float>(i) / 4.0f;
  return logits;
}

void report(const char* what, std::size_t n, const SamplingParams& params) {
  constexpr int kDraws = 200;
  const std::vector<float> logits = model_like_logits(n);
  SamplerScratch scratch;
  std::int64_t sum = 0;
  const std::clock_t begin = std::clock();
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<TokenId> history(static_cast<std::size_t>(i), 7);
    sum += sample({.logits = logits,
                   .params = &params,
                   .history = history,
                   .position = static_cast<std::uint32_t>(i)},
                  scratch)
               ->token;
  }
  const std::int64_t spent_us = (std::clock() - begin) * 1'000'000 / CLOCKS_PER_SEC;
  WARN(fmt::format("{:24} {:7} tokens {:9} ns per draw (sum {})", what, n,
                   spent_us * 1'000 / kDraws, sum));
}

}  // namespace

TEST_CASE("sampling speed", "[.speed]") {
  for (const std::size_t n : {std::size_t{32000}, std::size_t{151936}}) {
    report("greedy", n, {});
    report("temperature", n, {.temperature = 0.8f});
    report("top-k 40", n, {.temperature = 0.8f, .top_k = 40});
    report("top-p 0.95", n, {.temperature = 0.8f, .top_p = 0.95f});
    report("top-p 0.95, temp. 50", n, {.temperature = 50.0f, .top_p = 0.95f});
    report("min-p 0.05", n, {.temperature = 0.8f, .min_p = 0.05f});
    report("typical 0.95", n, {.temperature = 0.8f, .typical_p = 0.95f});
    report("greedy, penalties", n, {.repetition_penalty = 1.1f, .frequency_penalty = 0.5f});
    report("greedy, 5 logprobs", n, {.top_logprobs = 5});
  }
}

}  // namespace leasehold::testing
