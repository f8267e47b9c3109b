/// Draws the next token from one row of logits, in this order:
///
///   1. logit_bias            added to each named token's logit
///   2. repetition_penalty    once for each token of the history: divides a positive logit,
///                            multiplies any other (Keskar et al. 2019)
///   3. presence, frequency   logit - frequency_penalty · n - presence_penalty, for each token
///                            generated n > 0 times; the prompt does not count (OpenAI)
///   4. the mask              removes the tokens that the grammar forbids, before min_tokens those
///                            that end the text, and those that the model file suppresses
///   5. temperature           logits are divided by it; 0 picks the largest logit, at ties the
///                            lowest id, and skips 6 and 7
///   6. top-k, typical, top-p, min-p    worker/text/sampling/truncation.hpp
///   7. the draw              one of the remaining tokens, in proportion to e^logit
///
/// Penalties consider the last penalty_window tokens of prompt and generated text.
///
/// Log probabilities are those of the model's logits before step 1, so they can be compared between
/// requests and a bias cannot be read from them.
///
/// Pure: the random number depends on (seed, position), everything else on the arguments. No libm;
/// sums of weights are integers. A request therefore gives the same text in any batch, on every
/// machine, and after a rebind.
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
  std::optional<Logprobs> logprobs;  ///< If requested.
  bool operator==(const SampledToken&) const = default;
};

struct SampleInput {
  std::span<const float> logits;  // [n_vocab]
  const SamplingParams* params = nullptr;
  std::span<const TokenId> history;    ///< Prompt and generated tokens, all of this vocabulary.
  std::uint32_t position = 0;          ///< Number of generated tokens in the history.
  const TokenMask* allowed = nullptr;  ///< Null: all tokens.
};

/// A token and the model's logit for it.
struct CandidateToken {
  TokenId token = 0;
  float logit = 0.0f;
};

/// Buffers of one thread, reused so that a draw does not allocate vocabulary-sized memory.
struct SamplerScratch {
  std::vector<float> logits;
  std::vector<std::uint32_t> weights;
  std::vector<std::uint64_t> block_masses;
  std::vector<std::uint32_t> counts;  // zeros between draws
  std::vector<RankedToken> ranked;
  TokenMask kept;
  std::vector<CandidateToken> rated;
  std::vector<float> candidate_logits;
};

/// The number of largest logits that decide the draw: of those that the parameters need, each may
/// be of a token that `allowed` lacks. 0: the draw needs all logits or further inputs.
std::size_t top_logits_needed(const SamplingParams& params, const TokenMask* allowed);

/// Returns what `sample` returns for the whole row, from its largest logits alone: at least
/// `top_logits_needed` of them, largest first, at ties the lower token. All logits of the row are
/// finite. Errors: those of `sample`.
Result<SampledToken> sample_from_top(std::span<const CandidateToken> largest,
                                     const SampleInput& input, SamplerScratch& scratch);

/// The log probability of `token` in a row of logits, and the `n_top` most likely tokens; the same
/// bits as those of a token that `sample` draws from this row. Errors: NumericFault when a logit is
/// not finite.
Result<Logprobs> row_logprobs(std::span<const float> logits, TokenId token, std::uint32_t n_top);

/// Errors: NumericFault when a logit is not finite; BadRequest when the mask allows nothing.
Result<SampledToken> sample(const SampleInput& input, SamplerScratch& scratch);

}  // namespace leasehold
