#include "worker/text/sampling/params.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {
namespace {

/// Compares for a value inside the range, so that a NaN is refused.
Result<void> check_range(const char* field, float value, NumberRange range) {
  const auto [low, high] = range;
  if (value >= low && value <= high) return {};
  return fail(Errc::BadRequest,
              fmt::format("{} must be a number from {} to {}, not {}", field, low, high, value));
}

Result<void> check_count(const char* field, std::size_t count, std::size_t most) {
  if (count <= most) return {};
  return fail(Errc::BadRequest,
              fmt::format("{} has {} entries; at most {} are allowed", field, count, most));
}

Result<void> check_biases(const std::vector<LogitBias>& biases) {
  TRY(check_count("logit_bias", biases.size(), SamplingParams::kMaxLogitBiases));
  for (std::size_t i = 0; i < biases.size(); ++i) {
    TRY(check_range("logit_bias", biases[i].bias, SamplingParams::kBiases));
    if (i > 0 && biases[i - 1].token >= biases[i].token) {
      return fail(Errc::BadRequest, "logit_bias must name each token once, in ascending order");
    }
  }
  return {};
}

Result<void> check_stops(const SamplingParams& params) {
  TRY(check_count("stop", params.stop.size(), SamplingParams::kMaxStops));
  TRY(check_count("stop_token_ids", params.stop_tokens.size(), SamplingParams::kMaxStopTokens));
  for (const std::string& stop : params.stop) {
    if (!stop.empty() && stop.size() <= SamplingParams::kMaxStopBytes) continue;
    return fail(Errc::BadRequest, fmt::format("stop has a text of {} bytes; 1 to {} are allowed",
                                              stop.size(), SamplingParams::kMaxStopBytes));
  }
  return {};
}

Result<void> check_grammar(const SamplingParams& params) {
  const GrammarSource& grammar = params.grammar;
  if (grammar.text.size() > SamplingParams::kMaxGrammarBytes) {
    return fail(Errc::BadRequest,
                fmt::format("the grammar has {} bytes; at most {} are allowed", grammar.text.size(),
                            SamplingParams::kMaxGrammarBytes));
  }
  if (grammar.kind == GrammarKind::None || (!params.ignore_eos && params.min_tokens == 0))
    return {};
  return fail(
      Errc::BadRequest,
      fmt::format("{} cannot be combined with a grammar, which decides where the text ends; "
                  "remove one of them",
                  params.ignore_eos ? "ignore_eos" : "min_tokens"));
}

}  // namespace

Result<void> check_sampling(const SamplingParams& params) {
  TRY(check_range("temperature", params.temperature, SamplingParams::kTemperatures));
  TRY(check_range("top_p", params.top_p, SamplingParams::kProbabilities));
  TRY(check_range("min_p", params.min_p, SamplingParams::kProbabilities));
  TRY(check_range("typical_p", params.typical_p, SamplingParams::kProbabilities));
  TRY(check_range("repetition_penalty", params.repetition_penalty,
                  SamplingParams::kRepetitionPenalties));
  TRY(check_range("presence_penalty", params.presence_penalty, SamplingParams::kPenalties));
  TRY(check_range("frequency_penalty", params.frequency_penalty, SamplingParams::kPenalties));
  TRY(check_range("top_logprobs", static_cast<float>(params.top_logprobs.value_or(0)),
                  {0, SamplingParams::kMaxTopLogprobs}));
  TRY(check_biases(params.logit_bias));
  TRY(check_stops(params));
  return check_grammar(params);
}

}  // namespace leasehold
