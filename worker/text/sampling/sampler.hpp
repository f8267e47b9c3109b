/// Draws the next token from one row of logits. What is done to them, in this order:
///
///   1. logit_bias            added to each named token's logit
///   2. repetition_penalty    once for each token of the history: a logit above 0 is divided by it,
///                            others are multiplied (Keskar et al. 2019)
///   3. presence, frequency   logit - frequency_penalty · n - presence_penalty, for each token
///                            emitted n > 0 times: the prompt does not count (OpenAI's formula)
///   4. the mask              tokens a grammar does not allow are out
///   5. temperature           logits are divided by it; 0 takes the largest, lowest id first,
///                            and ends here
///   6. top-k, typical, top-p, min-p    worker/text/sampling/truncation.hpp
///   7. the draw              one of what is left, in proportion to e^logit
///
/// The penalties look at the last penalty_window tokens of prompt and emitted ones.
///
/// Log probabilities are those of the model's own logits, before 1: what the model thought,
/// whatever was then asked of it. So they mean the same in every request, and a bias cannot be read
/// off them.
///
/// Pure: the number drawn depends on (seed, position), everything else is in the arguments; no
/// libm, sums of weights are whole numbers. So a request gives the same text whatever else runs, on
/// every machine, and after a rebind, whose history is the same.
#pragma once

#include <span>

#include "worker/text/sampling/token_mask.hpp"
#include "worker/text/sampling/truncation.hpp"

namespace leasehold {

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;
  bool operator==(const TokenLogprob&) const = default;
};

struct Logprobs {
  float chosen = 0.0f;
  std::vector<TokenLogprob> top;  ///< The model's most likely tokens, most likely first.
  bool operator==(const Logprobs&) const = default;
};

struct SampledToken {
  TokenId token = 0;
  std::optional<Logprobs> logprobs;  ///< When asked for.
  bool operator==(const SampledToken&) const = default;
};

struct SampleInput {
  std::span<const float> logits;  // [n_vocab]
  const SamplingParams* params = nullptr;
  std::span<const TokenId> history;    ///< Prompt and emitted tokens, all of this vocabulary.
  std::uint32_t position = 0;          ///< How many of the history were emitted.
  const TokenMask* allowed = nullptr;  ///< Nothing: all.
};

/// A token and its logit, as the model gave it.
struct CandidateToken {
  TokenId token = 0;
  float logit = 0.0f;
};

/// What a thread keeps from one draw to the next, so that none allocates by the vocabulary.
struct SamplerScratch {
  std::vector<float> logits;
  std::vector<std::uint32_t> weights;
  std::vector<std::uint32_t> counts;  // zeros between draws
  std::vector<RankedToken> ranked;
  TokenMask kept;
  std::vector<CandidateToken> rated;
  std::vector<float> candidate_logits;
};

/// How many of the largest logits decide the draw, when all tokens are allowed; 0: all of them, or
/// something else than logits, too.
std::uint32_t top_logits_needed(const SamplingParams& params);

/// What `sample` draws from the whole row, drawn from the largest logits alone: at least
/// `top_logits_needed` of them, largest first, of equal ones the lower token. All of the row are
/// finite. Errors: none that `sample` has besides.
Result<SampledToken> sample_from_top(std::span<const CandidateToken> largest,
                                     const SampleInput& input, SamplerScratch& scratch);

/// Errors: NumericFault when a logit is not finite; BadRequest when the mask allows nothing.
Result<SampledToken> sample(const SampleInput& input, SamplerScratch& scratch);

}  // namespace leasehold
