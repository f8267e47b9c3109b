#include "worker/serve/parse_sampling.hpp"

#include <fmt/format.h>

#include "worker/schedule/request.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold {
namespace {

Result<void> check_token(const Tokenizer& tokenizer, TokenId token, const char* field) {
  const Result<void> checked = check_token_ids({&token, 1}, tokenizer.n_vocab());
  if (checked) return {};
  return fail(checked.error().code, fmt::format("{}: {}", field, checked.error().detail));
}

Result<GrammarSource> grammar_source(const wire::Sampling& sent) {
  const wire::ResponseFormat& format = sent.response_format;
  const bool has_format = format.type != "text";
  if (int{has_format} + int{!sent.grammar.empty()} + int{!sent.regex.empty()} > 1)
    return fail(Errc::BadRequest,
                "of grammar, regex and response_format several are set; send one of them");
  if (!sent.grammar.empty()) return GrammarSource{GrammarKind::Gbnf, sent.grammar};
  if (!sent.regex.empty()) return GrammarSource{GrammarKind::Regex, sent.regex};
  if (!has_format) return GrammarSource{};
  if (format.type == "json_object") return GrammarSource{GrammarKind::JsonObject, {}};
  return GrammarSource{format.strict ? GrammarKind::JsonSchema : GrammarKind::LenientJsonSchema,
                       format.schema};
}

}  // namespace

Result<SamplingParams> parse_sampling(const wire::RequestSubmit& request,
                                      const Tokenizer& tokenizer) {
  const wire::Sampling& sent = request.sampling;
  if (sent.top_logprobs > 0 && !sent.logprobs)
    return fail(Errc::BadRequest, "top_logprobs is set without logprobs; set logprobs too");
  GrammarSource grammar = TRY(grammar_source(sent));
  SamplingParams params{.temperature = sent.temperature,
                        .seed = sent.seed,
                        .ignore_eos = request.ignore_eos,
                        .min_tokens = sent.min_tokens,
                        .includes_stop = sent.include_stop_str_in_output,
                        .top_k = sent.top_k,
                        .top_p = sent.top_p,
                        .min_p = sent.min_p,
                        .typical_p = sent.typical_p,
                        .repetition_penalty = sent.repetition_penalty,
                        .presence_penalty = sent.presence_penalty,
                        .frequency_penalty = sent.frequency_penalty,
                        .penalty_window = sent.penalty_window,
                        .stop_tokens = sent.stop_token_ids,
                        .stop = sent.stop.all,
                        .grammar = std::move(grammar)};
  if (sent.logprobs) params.top_logprobs = sent.top_logprobs;
  for (const auto& [token, bias] : sent.logit_bias.by_token) {
    TRY(check_token(tokenizer, token, "logit_bias"));
    params.logit_bias.push_back({token, bias});
  }
  for (const TokenId token : params.stop_tokens)
    TRY(check_token(tokenizer, token, "stop_token_ids"));
  if (params.min_tokens > request.max_emitted_tokens) {
    return fail(Errc::BadRequest,
                fmt::format("min_tokens is {} and max_emitted_tokens {}; send a smaller min_tokens",
                            params.min_tokens, request.max_emitted_tokens));
  }
  TRY(check_sampling(params));
  return params;
}

Result<TextConstraint> ConstraintCompiler::compile(const GrammarSource& source) {
  TextConstraint constraint{.grammar = TRY(compile_grammar(source))};
  if (!constraint) return constraint;
  if (!vocabulary_) vocabulary_ = std::make_shared<const GrammarVocabulary>(*tokenizer_);
  constraint.vocabulary = vocabulary_;
  return constraint;
}

}  // namespace leasehold
