/// How a request wants its tokens chosen. Plain values: they travel with the request, are kept in
/// the sequence record, and together with the tokens so far determine everything that follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

struct LogitBias {
  TokenId token = 0;
  float bias = 0.0f;  ///< Added to the logit; -100 … 100.
  bool operator==(const LogitBias&) const = default;
};

enum class GrammarKind : std::uint8_t {
  None,
  Gbnf,        ///< `text` is a grammar in GBNF.
  JsonObject,  ///< Any JSON object; `text` is empty.
  JsonSchema,  ///< `text` is a JSON schema.
};

/// What the text must be, as its author wrote it (worker/text/grammar/compile.hpp reads it).
struct GrammarSource {
  GrammarKind kind = GrammarKind::None;
  std::string text;
  bool operator==(const GrammarSource&) const = default;
};

/// The filters and their order: worker/text/sampling/sampler.hpp.
struct SamplingParams {
  float temperature = 0.0f;          ///< 0 is greedy; 0 … 100.
  std::uint64_t seed = 0;            ///< Chance depends on it and the token's position only.
  bool ignore_eos = false;           ///< End tokens do not end the text. Not with a grammar.
  std::uint32_t top_k = 0;           ///< 0: all.
  float top_p = 1.0f;                ///< 0 … 1; 1: all.
  float min_p = 0.0f;                ///< 0 … 1; 0: all.
  float typical_p = 1.0f;            ///< 0 … 1; 1: all.
  float repetition_penalty = 1.0f;   ///< 0.01 … 100; 1: none.
  float presence_penalty = 0.0f;     ///< -2 … 2.
  float frequency_penalty = 0.0f;    ///< -2 … 2.
  std::uint32_t penalty_window = 0;  ///< Penalties look at the last so many tokens; 0: at all.
  /// How many alternatives to report beside each token's own log probability, 0 … 20; nothing: no
  /// log probabilities at all.
  std::optional<std::uint32_t> top_logprobs;
  std::vector<LogitBias> logit_bias;  ///< At most kMaxLogitBiases, ascending, each token once.
  std::vector<TokenId> stop_tokens;   ///< End the text and are no part of it.
  std::vector<std::string> stop;      ///< Texts that end the text and are no part of it.
  GrammarSource grammar;
  bool operator==(const SamplingParams&) const = default;

  static constexpr std::size_t kMaxLogitBiases = 300;
  static constexpr std::size_t kMaxStopTokens = 64;
  static constexpr std::size_t kMaxStops = 8;
  static constexpr std::size_t kMaxStopBytes = 256;
  static constexpr std::size_t kMaxGrammarBytes = std::size_t{32} << 10;
};

/// BadRequest naming the field that is out of its range. Whether tokens are of the vocabulary and
/// the grammar is one is for others to check.
Result<void> check_sampling(const SamplingParams& params);

}  // namespace leasehold
