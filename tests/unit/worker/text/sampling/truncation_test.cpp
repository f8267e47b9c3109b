// Compares every filter with its definition in doubles over many small random distributions.
#include "worker/text/sampling/truncation.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/random.hpp"
#include "tests/unit/worker/text/sampling/draw.hpp"
#include "worker/text/sampling/token_weights.hpp"

namespace leasehold::testing {
namespace {

using Tokens = std::set<TokenId>;

Tokens truncated(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<std::uint32_t> weights(logits.size());
  const float highest = *std::ranges::max_element(logits);
  compute_token_weights(logits, highest, params.temperature, weights);
  std::vector<RankedToken> ranked;
  TokenMask kept(logits.size());
  const std::uint64_t mass = truncate_tokens({logits, weights, highest}, params, ranked, kept);
  Tokens tokens;
  std::uint64_t mass_of_kept = 0;
  kept.for_each([&](TokenId token) {
    tokens.insert(token);
    mass_of_kept += weights[static_cast<std::size_t>(token)];
    return true;
  });
  REQUIRE(mass == mass_of_kept);
  return tokens;
}

// ---- the filters as defined in their papers

struct Ranked {
  TokenId token;
  double p;
};
using Distribution = std::vector<Ranked>;  // in the order of the next filter

void normalise(Distribution& tokens) {
  double sum = 0.0;
  for (const Ranked& token : tokens) sum += token.p;
  for (Ranked& token : tokens) token.p /= sum;
}

void most_likely_first(Distribution& tokens) {
  std::ranges::sort(tokens, [](const Ranked& a, const Ranked& b) {
    return a.p != b.p ? a.p > b.p : a.token < b.token;
  });
}

/// Stops at the first token that reaches the share; false if rounding could change the result.
bool truncate_at_mass(Distribution& tokens, double share) {
  double sum = 0.0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sum += tokens[i].p;
    if (std::abs(sum - share) < 1e-6) return false;
    if (sum < share) continue;
    tokens.resize(i + 1);
    return true;
  }
  return true;
}

bool keep_typical(Distribution& tokens, double share) {
  normalise(tokens);
  double entropy = 0.0;
  for (const Ranked& token : tokens) entropy -= token.p * std::log(token.p);
  const auto surprise = [&](const Ranked& t) { return std::abs(entropy + std::log(t.p)); };
  std::ranges::sort(tokens, [&](const Ranked& a, const Ranked& b) {
    return surprise(a) != surprise(b) ? surprise(a) < surprise(b) : a.token < b.token;
  });
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (surprise(tokens[i]) - surprise(tokens[i - 1]) < 1e-5) return false;
  return truncate_at_mass(tokens, share);
}

/// Returns nothing if rounding could change the result.
std::optional<Tokens> expected(const std::vector<float>& logits, const SamplingParams& params) {
  Distribution tokens;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double scaled = static_cast<double>(logits[i]) / static_cast<double>(params.temperature);
    tokens.push_back({static_cast<TokenId>(i), std::exp(scaled)});
  }
  normalise(tokens);
  most_likely_first(tokens);
  if (params.top_k > 0 && tokens.size() > params.top_k) tokens.resize(params.top_k);
  if (params.typical_p < 1.0f && !keep_typical(tokens, static_cast<double>(params.typical_p)))
    return std::nullopt;
  normalise(tokens);
  most_likely_first(tokens);
  if (params.top_p < 1.0f && !truncate_at_mass(tokens, static_cast<double>(params.top_p)))
    return std::nullopt;
  Tokens kept;
  for (const Ranked& token : tokens) {
    const double least = static_cast<double>(params.min_p) * tokens.front().p;
    if (std::abs(token.p - least) < 1e-7) return std::nullopt;
    if (token.p >= least) kept.insert(token.token);
  }
  return kept;
}

}  // namespace

TEST_CASE("truncation: filters keep what their definitions keep, alone and together") {
  SeededRandom random(2026);
  const auto unit = [&] { return static_cast<float>(random.below(1000)) / 1000.0f; };
  int decided = 0;
  for (int round = 0; round < 6000; ++round) {
    std::vector<float> logits(1 + random.below(40));
    for (float& logit : logits) logit = unit() * 8.0f;
    SamplingParams params{.temperature = 0.5f + unit()};
    const std::uint64_t which = random.below(5);  // one of four, or all
    if (which == 0 || which == 4) params.top_k = static_cast<std::uint32_t>(1 + random.below(12));
    if (which == 1 || which == 4) params.typical_p = 0.05f + 0.9f * unit();
    if (which == 2 || which == 4) params.top_p = 0.05f + 0.9f * unit();
    if (which == 3 || which == 4) params.min_p = 0.5f * unit();
    const std::optional<Tokens> tokens = expected(logits, params);
    if (!tokens) continue;
    ++decided;
    CAPTURE(round, which, params.top_k, params.typical_p, params.top_p, params.min_p);
    REQUIRE(truncated(logits, params) == *tokens);
  }
  REQUIRE(decided > 5000);
}

TEST_CASE("truncation: at ties the lower ids are kept") {
  const std::vector<float> even(10, 1.0f);
  REQUIRE(truncated(even, {.temperature = 1.0f, .top_k = 3}) == Tokens{0, 1, 2});
  REQUIRE(truncated(even, {.temperature = 1.0f, .top_p = 0.45f}) == Tokens{0, 1, 2, 3, 4});
  REQUIRE(truncated(even, {.temperature = 1.0f, .typical_p = 0.25f}) == Tokens{0, 1, 2});
}

TEST_CASE("truncation: at least one token is kept") {
  const std::vector<float> logits{1.0f, 2.0f, 3.0f};
  REQUIRE(truncated(logits, {.temperature = 1.0f, .top_p = 0.0f}) == Tokens{2});
  REQUIRE(truncated(logits, {.temperature = 1.0f, .min_p = 1.0f}) == Tokens{2});
  REQUIRE(truncated(logits, {.temperature = 1.0f, .typical_p = 0.001f}).size() == 1);
  REQUIRE(truncated(logits, {.temperature = 1.0f, .top_k = 1}) == Tokens{2});
}

TEST_CASE("truncation: a filter that keeps everything changes no draw") {
  SeededRandom random(4);
  std::vector<float> logits(300);
  for (float& logit : logits) logit = static_cast<float>(random.below(1000)) / 200.0f;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const SamplingParams plain{.temperature = 0.8f, .seed = seed};
    SamplingParams wide = plain;
    wide.top_k = 300;
    const TokenId drawn = Draw{logits, plain}.token();
    REQUIRE(Draw{logits, wide}.token() == drawn);
    wide.min_p = 1e-6f;
    REQUIRE(Draw{logits, wide}.token() == drawn);
  }
}

TEST_CASE("truncation: top-k of one is greedy") {
  SeededRandom random(6);
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<float> logits(64);
    for (float& logit : logits) logit = static_cast<float>(random.below(40));
    const TokenId greedy = Draw{logits}.token();
    REQUIRE(Draw{logits, {.temperature = 2.0f, .seed = round, .top_k = 1}}.token() == greedy);
  }
}

}  // namespace leasehold::testing
