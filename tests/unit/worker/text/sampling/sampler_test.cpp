#include "worker/text/sampling/sampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "common/random.hpp"
#include "kernels/numerics/log.hpp"
#include "tests/unit/worker/text/sampling/draw.hpp"
#include "worker/text/sampling/token_weights.hpp"

namespace leasehold::testing {
namespace {

/// Counts how often each of `n` tokens is drawn at `draws` positions.
std::vector<int> counts_of(Draw draw, int draws) {
  std::vector<int> counts(draw.logits.size());
  for (int i = 0; i < draws; ++i) {
    draw.params.seed = 5;
    draw.position = static_cast<std::uint32_t>(i);
    draw.history.assign(draw.position, 0);
    ++counts[static_cast<std::size_t>(draw.token())];
  }
  return counts;
}

std::vector<float> random_logits(std::size_t n, std::uint64_t seed) {
  std::vector<float> logits(n);
  for (std::size_t i = 0; i < n; ++i) logits[i] = random_unit_at(seed, i) * 30.0f - 15.0f;
  return logits;
}

}  // namespace

TEST_CASE("sampler: greedy takes the lowest id among the largest logits") {
  REQUIRE(Draw{{1.0f, 3.0f, 3.0f, 2.0f}}.token() == 1);
  REQUIRE(Draw{{-5.0f, -4.0f}}.token() == 1);
  REQUIRE(Draw{{-0.0f, 0.0f}}.token() == 0);
  std::vector<float> long_row(100, 1.0f);
  long_row[77] = 2.0f;
  long_row[98] = 2.0f;
  REQUIRE(Draw{long_row}.token() == 77);
}

TEST_CASE("sampler: a logit that is not finite is a NumericFault at any temperature") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), inf, -inf}) {
    for (const float temperature : {0.0f, 1.0f}) {
      const auto drawn = Draw{{1.0f, bad}, {.temperature = temperature}}.result();
      REQUIRE(drawn.error().code == Errc::NumericFault);
      REQUIRE(drawn.error().detail.find("token 1") != std::string::npos);
    }
  }
  // Finite, but the penalty makes it infinite.
  const auto drawn =
      Draw{.logits = {1.0f, 3e38f}, .params = {.repetition_penalty = 0.01f}, .history = {1}}
          .result();
  REQUIRE(drawn.error().code == Errc::NumericFault);
}

TEST_CASE("sampler: a draw depends on seed and position only") {
  Draw draw{{0.0f, 0.5f, 1.0f, 0.2f}, {.temperature = 1.0f, .seed = 42}};
  std::vector<TokenId> drawn;
  for (draw.position = 0; draw.position < 12; ++draw.position) {
    draw.history.assign(draw.position, 0);
    drawn.push_back(draw.token());
    REQUIRE(draw.token() == drawn.back());
  }
  REQUIRE(drawn == std::vector<TokenId>{2, 1, 1, 1, 0, 3, 1, 2, 1, 2, 1, 2});
}

TEST_CASE("sampler: token frequencies follow softmax") {
  const Draw draw{{0.0f, std::log(2.0f), std::log(5.0f)}, {.temperature = 1.0f}};  // 1 : 2 : 5
  const std::vector<int> counts = counts_of(draw, 8000);
  REQUIRE(std::abs(counts[0] - 1000) < 120);  // four standard deviations
  REQUIRE(std::abs(counts[1] - 2000) < 160);
  REQUIRE(std::abs(counts[2] - 5000) < 180);
}

TEST_CASE("sampler: a temperature near zero is greedy, a huge one is uniform") {
  REQUIRE(counts_of({{1.0f, 2.0f, 1.5f}, {.temperature = 1e-30f}}, 300)[1] == 300);
  for (const int count : counts_of({{1.0f, 2.0f, 1.5f}, {.temperature = 1e30f}}, 300))
    REQUIRE(std::abs(count - 100) < 40);
}

TEST_CASE("sampler: a bias is added before all other steps") {
  REQUIRE(Draw{{1.0f, 3.0f, 2.0f}, {.logit_bias = {{2, 1.5f}}}}.token() == 2);
  REQUIRE(Draw{{1.0f, 3.0f, 2.0f}, {.logit_bias = {{1, -100.0f}}}}.token() == 2);
  // 1 + 3 = 4, divided by 2 because it is positive: 2 is below 2.5.
  const SamplingParams both{.repetition_penalty = 2.0f, .logit_bias = {{0, 3.0f}}};
  REQUIRE(Draw{{1.0f, 2.5f}, both, {0}}.token() == 1);
}

TEST_CASE("sampler: the repetition penalty counts a token once, for either sign of its logit") {
  const SamplingParams params{.repetition_penalty = 2.0f};
  REQUIRE(Draw{{4.0f, 1.9f}, params, {}}.token() == 0);
  REQUIRE(Draw{{4.0f, 1.9f}, params, {0}}.token() == 0);           // 2.0
  REQUIRE(Draw{{4.0f, 1.9f}, params, {0, 0, 0}, 1}.token() == 0);  // 2.0 still
  REQUIRE(Draw{{4.0f, 2.1f}, params, {0}, 0}.token() == 1);        // from the prompt
  REQUIRE(Draw{{4.0f, 2.1f}, params, {0}, 1}.token() == 1);        // emitted
  REQUIRE(Draw{{-1.0f, -1.9f}, params, {0}}.token() == 1);         // -2.0
}

TEST_CASE(
    "sampler: the frequency penalty counts, the presence penalty does not, both ignore the "
    "prompt") {
  const SamplingParams frequency{.frequency_penalty = 1.0f};
  REQUIRE(Draw{{3.0f, 1.5f}, frequency, {0, 0}, 0}.token() == 0);
  REQUIRE(Draw{{3.0f, 1.5f}, frequency, {0, 0}, 1}.token() == 0);  // 2.0
  REQUIRE(Draw{{3.0f, 1.5f}, frequency, {0, 0}, 2}.token() == 1);  // 1.0
  const SamplingParams presence{.presence_penalty = 1.0f};
  REQUIRE(Draw{{3.0f, 1.5f}, presence, {0, 0}, 2}.token() == 0);  // 2.0
  REQUIRE(Draw{{2.4f, 1.5f}, presence, {0}, 1}.token() == 1);     // 1.4
  REQUIRE(Draw{{2.4f, 1.5f}, presence, {0}, 0}.token() == 0);
}

TEST_CASE("sampler: penalties consider the window only") {
  SamplingParams params{.repetition_penalty = 10.0f, .penalty_window = 2};
  REQUIRE(Draw{{4.0f, 1.0f, 0.0f}, params, {0, 2, 2}}.token() == 0);
  REQUIRE(Draw{{4.0f, 1.0f, 0.0f}, params, {2, 0, 2}}.token() == 1);
  params = {.frequency_penalty = 2.0f, .penalty_window = 2};
  REQUIRE(Draw{{4.0f, 1.0f}, params, {0, 0, 1}, 3}.token() == 0);  // 2.0 against -1.0
  params.penalty_window = 0;
  REQUIRE(Draw{{4.0f, 1.0f}, params, {0, 0, 0}, 3}.token() == 1);
}

TEST_CASE("sampler: a masked token is never drawn, and an empty mask is a BadRequest") {
  for (const float temperature : {0.0f, 1.0f}) {
    Draw draw{{9.0f, 1.0f, 2.0f, 8.0f}, {.temperature = temperature, .top_k = 2}};
    draw.allowed = mask_of(4, {1, 2});
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      draw.params.seed = seed;
      const TokenId token = draw.token();
      REQUIRE((token == 1 || token == 2));
    }
    draw.allowed = mask_of(4, {});
    REQUIRE(draw.result().error().code == Errc::BadRequest);
  }
}

TEST_CASE("sampler: log probabilities ignore biases and penalties") {
  const std::vector<float> logits{0.0f, std::log(2.0f), std::log(5.0f), std::log(2.0f)};
  SamplingParams params{.top_logprobs = 3};
  const auto plain = Draw{logits, params}.result();
  REQUIRE(plain->token == 2);
  REQUIRE(plain->logprobs->chosen == Approx(std::log(0.5)).epsilon(1e-6));
  REQUIRE(plain->logprobs->top.size() == 3);
  REQUIRE(plain->logprobs->top[0] == TokenLogprob{2, plain->logprobs->chosen});
  REQUIRE(plain->logprobs->top[1].token == 1);  // at ties the lower id first
  REQUIRE(plain->logprobs->top[2].token == 3);
  REQUIRE(plain->logprobs->top[2].logprob == Approx(std::log(0.2)).epsilon(1e-6));

  params.logit_bias = {{0, 50.0f}};
  params.temperature = 0.1f;
  params.repetition_penalty = 3.0f;
  const auto pushed = Draw{logits, params, {2}, 1}.result();
  REQUIRE(pushed->token == 0);
  REQUIRE(pushed->logprobs->chosen == Approx(std::log(0.1)).epsilon(1e-6));
  REQUIRE(pushed->logprobs->top == plain->logprobs->top);

  REQUIRE_FALSE(Draw{logits}.result()->logprobs);
  REQUIRE(Draw{logits, {.top_logprobs = 0}}.result()->logprobs->top.empty());
  REQUIRE(Draw{logits, {.top_logprobs = 20}}.result()->logprobs->top.size() == 4);
}

TEST_CASE("sampler: log probabilities of a large vocabulary agree with doubles") {
  const std::vector<float> logits = random_logits(20000, 3);
  const auto sampled = Draw{logits, {.temperature = 1.0f, .seed = 8, .top_logprobs = 20}}.result();
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (const TokenLogprob& top : sampled->logprobs->top) {
    const auto logit = static_cast<double>(logits[static_cast<std::size_t>(top.token)]);
    REQUIRE(std::abs(static_cast<double>(top.logprob) - (logit - std::log(sum))) < 2e-6);
  }
}

TEST_CASE("sampler: weights are the same bits with and without AVX2") {
  const std::vector<float> logits = random_logits(2053, 1);
  std::vector<std::uint32_t> fast(logits.size());
  std::vector<std::uint32_t> portable(logits.size());
  for (const float temperature : {0.01f, 0.7f, 1.0f, 3.0f, 1e30f}) {
    compute_token_weights(logits, 15.0f, temperature, fast);
    compute_token_weights_scalar(logits, 15.0f, temperature, portable);
    REQUIRE(fast == portable);
  }
}

TEST_CASE("sampler: the logarithm is within its error bound of the C library") {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double x = std::ldexp(1.0 + static_cast<double>(random_unit_at(7, i)),
                                static_cast<int>(random_at(8, i) % 200) - 100);
    REQUIRE(std::abs(log_f64(x) - std::log(x)) <= 4e-16 + 3e-16 * std::abs(std::log(x)));
  }
  REQUIRE(log_f64(1.0) == 0.0);
}

/// All tokens, the largest logit first, at ties the lower token.
std::vector<CandidateToken> ranked(const std::vector<float>& logits) {
  std::vector<CandidateToken> all;
  for (std::size_t i = 0; i < logits.size(); ++i)
    all.push_back({static_cast<TokenId>(i), logits[i]});
  std::ranges::stable_sort(all, std::greater<>(), &CandidateToken::logit);
  return all;
}

TEST_CASE("sampler: the largest logits alone give the same draw as the whole row") {
  constexpr std::size_t kLargest = 64;
  SamplerScratch scratch;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<float> logits = random_logits(300 + seed, seed);
    // Some logits are equal, also at the boundary.
    if (seed % 3 == 0)
      for (float& logit : logits) logit = std::round(logit);
    SamplingParams params{
        .temperature = seed % 5 == 0 ? 0.0f : 0.3f + 0.01f * static_cast<float>(seed),
        .seed = seed,
        .top_k = static_cast<std::uint32_t>(1 + seed % kLargest)};
    if (seed % 2 == 0) params.top_p = 0.8f;
    if (seed % 7 == 0) params.typical_p = 0.5f;
    if (seed % 11 == 0) params.min_p = 0.1f;
    CAPTURE(seed);
    TokenMask allowed = TokenMask::all(logits.size());
    for (const std::size_t rank : {std::size_t{0}, seed % kLargest})
      if (seed % 4 == 0) allowed.remove(ranked(logits)[rank].token);
    const std::size_t needed = top_logits_needed(params, &allowed);
    if (needed > kLargest) continue;
    std::vector<CandidateToken> largest = ranked(logits);
    largest.resize(needed);
    for (std::uint32_t position = 0; position < 5; ++position) {
      const SampleInput input{.logits = logits,
                              .params = &params,
                              .position = position,
                              .allowed = seed % 3 == 1 && seed % 4 != 0 ? nullptr : &allowed};
      const auto of_all = sample(input, scratch);
      const auto of_few = sample_from_top(largest, input, scratch);
      REQUIRE(of_all);
      REQUIRE(of_few == of_all);
    }
  }
}

TEST_CASE("sampler: requests that need more than the largest logits get the whole row") {
  TokenMask allowed = TokenMask::all(100);
  const auto needed = [&](const SamplingParams& params) {
    return top_logits_needed(params, &allowed);
  };
  CHECK(top_logits_needed({.temperature = 0.0f}, nullptr) == 1);
  CHECK(needed({.temperature = 0.0f}) == 1);
  CHECK(needed({.temperature = 1.0f, .top_k = 40}) == 40);
  CHECK(needed({.temperature = 1.0f}) == 0);
  CHECK(needed({.temperature = 0.0f, .repetition_penalty = 1.1f}) == 0);
  CHECK(needed({.temperature = 0.0f, .logit_bias = {{1, 2.0f}}}) == 0);
  CHECK(needed({.temperature = 0.0f, .top_logprobs = 0}) == 0);
  allowed.remove(0);
  allowed.remove(99);
  CHECK(needed({.temperature = 0.0f}) == 3);  // both of these may be the largest
  CHECK(needed({.temperature = 1.0f, .top_k = 40}) == 42);
  CHECK(needed({.temperature = 1.0f}) == 0);
}

}  // namespace leasehold::testing
