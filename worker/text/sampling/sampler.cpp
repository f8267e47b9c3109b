#include "worker/text/sampling/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/random.hpp"
#include "kernels/numerics/log.hpp"
#include "worker/text/sampling/row_scans.hpp"
#include "worker/text/sampling/token_weights.hpp"

namespace leasehold {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
Result<void> check_logits(std::span<const float> logits, std::string_view source) {
  if (row_scans().all_finite(logits)) return {};
  const auto bad = std::ranges::find_if(logits, [](float x) { return !std::isfinite(x); });
  return fail(Errc::NumericFault, fmt::format("{} gave a logit of {} for token {}", source, *bad,
                                              bad - logits.begin()));
}

// ------------------------------------------------------------------------------------- penalties

bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f;
}

/// Calls `visit(token, count)` once for each distinct token. `counts` is all zeros before and
/// after.
template <class Visit>
void for_each_count(std::span<const TokenId> tokens, std::vector<std::uint32_t>& counts,
                    Visit visit) {
  for (const TokenId token : tokens) ++counts[static_cast<std::size_t>(token)];
  for (const TokenId token : tokens) {
    const std::uint32_t count = std::exchange(counts[static_cast<std::size_t>(token)], 0);
    if (count > 0) visit(static_cast<std::size_t>(token), count);
  }
}

void apply_penalties(const SampleInput& input, SamplerScratch& scratch) {
  const SamplingParams& params = *input.params;
  const std::size_t all = input.history.size();
  const std::size_t window =
      params.penalty_window == 0 ? all : std::min<std::size_t>(all, params.penalty_window);
  const std::size_t emitted = std::min<std::size_t>(window, input.position);
  scratch.counts.resize(input.logits.size());
  for_each_count(input.history.last(window), scratch.counts, [&](std::size_t token, std::uint32_t) {
    float& logit = scratch.logits[token];
    logit = logit > 0.0f ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  });
  for_each_count(input.history.last(emitted), scratch.counts,
                 [&](std::size_t token, std::uint32_t count) {
                   const float by_count = params.frequency_penalty * static_cast<float>(count);
                   scratch.logits[token] -= by_count + params.presence_penalty;
                 });
}

void apply_mask(const TokenMask& allowed, std::vector<float>& logits) {
  for (std::size_t from = 0; from < logits.size(); from += 64) {
    const std::uint64_t word = allowed.word(from / 64);
    if (word == ~std::uint64_t{0}) continue;
    const std::size_t end = std::min(from + 64, logits.size());
    for (std::size_t i = from; i < end; ++i)
      if ((word >> (i - from) & 1) == 0) logits[i] = -kInfinity;
  }
}

/// The logits after biases and penalties; the model's own if there are none.
Result<std::span<const float>> adjusted_logits(const SampleInput& input, SamplerScratch& scratch) {
  const SamplingParams& params = *input.params;
  if (params.logit_bias.empty() && !has_penalties(params) && !input.allowed) return input.logits;
  scratch.logits.assign(input.logits.begin(), input.logits.end());
  for (const LogitBias& bias : params.logit_bias)
    scratch.logits[static_cast<std::size_t>(bias.token)] += bias.bias;
  if (has_penalties(params)) apply_penalties(input, scratch);
  TRY(check_logits(scratch.logits, "bias or penalties"));
  if (input.allowed) apply_mask(*input.allowed, scratch.logits);
  return std::span<const float>(scratch.logits);
}

// --------------------------------------------------------------------------------------- the draw

/// Uniform in [0, bound): the high half of a 64 by 64 bit product.
std::uint64_t random_below(std::uint64_t bound, const SampleInput& input) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t random = random_at(input.params->seed, input.position);
  return static_cast<std::uint64_t>(Wide{random} * bound >> 64);
}

/// Finds the token at which the sum of weights, in ascending order of ids, exceeds a random number.
/// Skips whole blocks first, then tokens of the block that contains it.
TokenId draw_from_all(std::span<const std::uint32_t> weights, const SampleInput& input,
                      std::vector<std::uint64_t>& block_masses) {
  constexpr std::size_t kBlock = 1024;
  std::uint64_t total = 0;
  block_masses.clear();
  for (std::size_t from = 0; from < weights.size(); from += kBlock) {
    const std::size_t n = std::min(kBlock, weights.size() - from);
    block_masses.push_back(row_scans().at_least(weights.subspan(from, n), 1).mass);
    total += block_masses.back();
  }
  std::uint64_t left = random_below(total, input);
  std::size_t token = 0;
  for (std::size_t block = 0; left >= block_masses[block]; ++block, token += kBlock)
    left -= block_masses[block];
  for (; left >= weights[token]; ++token) left -= weights[token];
  return static_cast<TokenId>(token);
}

TokenId draw_from_kept(std::uint64_t total, const SampleInput& input,
                       const SamplerScratch& scratch) {
  std::uint64_t left = random_below(total, input);
  TokenId drawn = 0;
  scratch.kept.for_each([&](TokenId token) {
    drawn = token;
    const std::uint32_t weight = scratch.weights[static_cast<std::size_t>(token)];
    if (left < weight) return false;
    left -= weight;
    return true;
  });
  return drawn;
}

TokenId draw(std::span<const float> logits, float highest, const SampleInput& input,
             SamplerScratch& scratch) {
  const SamplingParams& params = *input.params;
  scratch.weights.resize(logits.size());
  compute_token_weights(logits, highest, params.temperature, scratch.weights);
  if (!truncates(params)) return draw_from_all(scratch.weights, input, scratch.block_masses);
  if (scratch.kept.size() != logits.size()) scratch.kept = TokenMask(logits.size());
  scratch.kept.clear();
  const std::uint64_t total =
      truncate_tokens({logits, scratch.weights, highest}, params, scratch.ranked, scratch.kept);
  return draw_from_kept(total, input, scratch);
}

// ------------------------------------------------------------------------------ log probabilities

std::vector<TokenLogprob> most_likely(std::span<const float> logits, std::size_t count) {
  std::vector<TokenLogprob> top;
  if (count == 0) return top;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (top.size() == count && logits[i] <= top.back().logprob) continue;
    if (top.size() == count) top.pop_back();
    const auto after = std::ranges::find_if(
        top, [&](const TokenLogprob& other) { return other.logprob < logits[i]; });
    top.insert(after, {static_cast<TokenId>(i), logits[i]});
  }
  return top;
}

Logprobs logprobs_of(std::span<const float> logits, TokenId chosen, std::uint32_t n_top) {
  const float highest = row_scans().highest(logits);
  const double log_sum = log_f64(sum_exp(logits, highest));
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(highest) - log_sum);
  };
  Logprobs logprobs{.chosen = logprob(logits[static_cast<std::size_t>(chosen)]),
                    .top = most_likely(logits, n_top)};
  for (TokenLogprob& top : logprobs.top) top.logprob = logprob(top.logprob);
  return logprobs;
}

}  // namespace

std::size_t top_logits_needed(const SamplingParams& params, const TokenMask* allowed) {
  if (!params.logit_bias.empty() || has_penalties(params) || params.top_logprobs) return 0;
  const std::size_t needed = params.temperature == 0.0f ? 1 : params.top_k;
  if (needed == 0 || allowed == nullptr) return needed;
  return needed + allowed->size() - allowed->count();
}

/// Filters depend only on weights and on the order of ids, and tokens outside the top k are
/// dropped. So the largest logits, in the order of their ids, give the same result as the whole
/// row.
Result<SampledToken> sample_from_top(std::span<const CandidateToken> largest,
                                     const SampleInput& input, SamplerScratch& scratch) {
  scratch.rated.assign(largest.begin(), largest.end());
  if (input.allowed != nullptr) {
    std::erase_if(scratch.rated, [&](const CandidateToken& candidate) {
      return !input.allowed->contains(candidate.token);
    });
  }
  std::ranges::sort(scratch.rated, {}, &CandidateToken::token);
  std::vector<float> logits = std::move(scratch.candidate_logits);
  logits.clear();
  for (const CandidateToken& rated : scratch.rated) logits.push_back(rated.logit);
  Result<SampledToken> sampled =
      sample({.logits = logits, .params = input.params, .position = input.position}, scratch);
  if (sampled) sampled->token = scratch.rated[static_cast<std::size_t>(sampled->token)].token;
  scratch.candidate_logits = std::move(logits);
  return sampled;
}

Result<SampledToken> sample(const SampleInput& input, SamplerScratch& scratch) {
  TRY(check_logits(input.logits, "the model"));
  const std::span<const float> logits = TRY(adjusted_logits(input, scratch));
  const float highest = row_scans().highest(logits);
  if (highest == -kInfinity) {
    return fail(Errc::BadRequest,
                "the grammar allows no token of this model's vocabulary here; use a wider grammar");
  }
  SampledToken sampled;
  if (input.params->temperature == 0.0f) {
    sampled.token = static_cast<TokenId>(row_scans().find(logits, highest));
  } else {
    sampled.token = draw(logits, highest, input, scratch);
  }
  if (const auto n_top = input.params->top_logprobs)
    sampled.logprobs = logprobs_of(input.logits, sampled.token, *n_top);
  return sampled;
}

Result<Logprobs> row_logprobs(std::span<const float> logits, TokenId token, std::uint32_t n_top) {
  TRY(check_logits(logits, "the model"));
  return logprobs_of(logits, token, n_top);
}

}  // namespace leasehold
