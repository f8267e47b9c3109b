#include "tests/property/chosen_requests.hpp"

#include <catch2/catch.hpp>

#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

SamplingParams of_schema(std::string schema) {
  return {.temperature = 1.5f,
          .seed = 4,
          .min_p = 0.0f,
          .grammar = {GrammarKind::JsonSchema, std::move(schema)}};
}

}  // namespace

const std::vector<SamplingParams>& all_sampling_params() {
  static const std::vector<SamplingParams> kAsked{
      {.temperature = 1.0f,
       .seed = 11,
       .ignore_eos = true,
       .top_k = 30,
       .top_p = 0.9f,
       .min_p = 0.01f,
       .typical_p = 0.95f,
       .top_logprobs = 3},
      {.ignore_eos = true,
       .repetition_penalty = 1.3f,
       .presence_penalty = 0.5f,
       .frequency_penalty = 0.7f,
       .penalty_window = 9},
      {.temperature = 0.8f, .seed = 4, .ignore_eos = true, .stop = {"e t", ". "}},
      {.ignore_eos = true, .logit_bias = {{5, -100.0f}, {300, 4.0f}}, .stop_tokens = {301}},
      // Its text is short whatever is drawn and however JSON may be laid out.
      of_schema(R"({"type":"string","pattern":"^[a-z]{4,12}$"})"),
      {.temperature = 1.0f,
       .seed = 9,
       .grammar = {GrammarKind::Gbnf, R"(root ::= ([A-Z] [a-z]{1,6} " ")+ "!")"}},
      of_schema(R"({"type":"object","properties":{"a":{"type":"boolean"},
                    "b":{"type":"string","maxLength":5}},"required":["a","b"]})"),
      {.temperature = 1.0f,
       .seed = 3,
       .min_tokens = 9,
       .includes_stop = true,
       .stop_tokens = {301},
       .stop = {"e", " "}},
      {.temperature = 1.0f, .seed = 5, .grammar = {GrammarKind::Regex, "([A-Z][a-z]{1,6} ){2,4}!"}},
  };
  return kAsked;
}

PromptRequest sampling_request(const EngineRig& rig, const SamplingParams& sampling, LeaseId lease,
                               const std::string& id) {
  PromptRequest request = rig.request("t", lease, id, rig.encode(prompts()[3]), kSampledTokens);
  request.sampling = sampling;
  const auto grammar = compile_grammar(sampling.grammar);
  REQUIRE(grammar);
  if (*grammar)
    request.constraint = {*grammar, std::make_shared<const GrammarVocabulary>(rig.tokenizer())};
  return request;
}

}  // namespace leasehold::testing
