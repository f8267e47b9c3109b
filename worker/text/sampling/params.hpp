/// The sampling parameters of a request. Plain values, stored in the sequence record. Together with
/// the tokens so far they determine all further tokens.
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
  float bias = 0.0f;  ///< Added to the logit.
  bool operator==(const LogitBias&) const = default;
};

enum class GrammarKind : std::uint8_t {
  None,
  Gbnf,               ///< `text` is a grammar in GBNF.
  JsonObject,         ///< Any JSON object; `text` is empty.
  JsonSchema,         ///< `text` is a JSON schema.
  LenientJsonSchema,  ///< The same as JsonSchema, but ignores what no grammar can enforce.
  Regex,              ///< `text` is a regular expression that the whole text matches.
};

/// The grammar of a request, as the client wrote it; worker/text/grammar/compile.hpp compiles it.
struct GrammarSource {
  GrammarKind kind = GrammarKind::None;
  std::string text;
  bool operator==(const GrammarSource&) const = default;
};

/// Both bounds are inclusive.
struct NumberRange {
  float low = 0.0f;
  float high = 0.0f;
};

/// worker/text/sampling/sampler.hpp defines the steps and their order.
struct SamplingParams {
  static constexpr NumberRange kTemperatures{0.0f, 100.0f};
  static constexpr NumberRange kProbabilities{0.0f,
                                              1.0f};  ///< Range of top_p, min_p and typical_p.
  static constexpr NumberRange kRepetitionPenalties{0.01f, 100.0f};
  static constexpr NumberRange kPenalties{-2.0f, 2.0f};  ///< Range of both penalties.
  static constexpr NumberRange kBiases{-100.0f, 100.0f};
  static constexpr std::uint32_t kMaxTopLogprobs = 20;

  float temperature = 0.0f;  ///< 0 is greedy.
  std::uint64_t seed = 0;    ///< With the position of a token, the only source of randomness.
  bool ignore_eos = false;   ///< End tokens do not end the text. Refused with a grammar.
  /// While the text has fewer tokens, end tokens and stop tokens are not drawn. A stop string ends
  /// the text only with a later token. Refused with a grammar.
  std::uint32_t min_tokens = 0;
  bool includes_stop = false;       ///< The stop string that ends the text is part of it.
  std::uint32_t top_k = 0;          ///< 0: all.
  float top_p = 1.0f;               ///< 1: all.
  float min_p = 0.0f;               ///< 0: all.
  float typical_p = 1.0f;           ///< 1: all.
  float repetition_penalty = 1.0f;  ///< 1: none.
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::uint32_t penalty_window = 0;  ///< Number of recent tokens that penalties consider; 0: all.
  /// Number of alternatives to report with each token's log probability, at most kMaxTopLogprobs.
  /// Empty: report no log probabilities.
  std::optional<std::uint32_t> top_logprobs;
  std::vector<LogitBias> logit_bias;  ///< At most kMaxLogitBiases, ascending, each token once.
  std::vector<TokenId> stop_tokens;   ///< Each ends the text and is not part of it.
  std::vector<std::string> stop;      ///< Each ends the text; see includes_stop.
  GrammarSource grammar;
  bool operator==(const SamplingParams&) const = default;

  static constexpr std::size_t kMaxLogitBiases = 300;
  static constexpr std::size_t kMaxStopTokens = 64;
  static constexpr std::size_t kMaxStops = 64;
  static constexpr std::size_t kMaxStopBytes = 256;
  static constexpr std::size_t kMaxGrammarBytes = std::size_t{32} << 10;
};

/// Checks ranges only; the caller checks token ids against the vocabulary and compiles the grammar.
/// Errors: BadRequest naming the field.
Result<void> check_sampling(const SamplingParams& params);

}  // namespace leasehold
