#include "worker/serve/parse_sampling.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "tests/support/tiny_tokenizer.hpp"

namespace leasehold::testing {

TEST_CASE("parse sampling: every field of the request is parsed") {
  const Tokenizer tokenizer = tiny_tokenizer();
  wire::RequestSubmit request;
  request.ignore_eos = true;
  request.sampling = {.temperature = 0.5f,
                      .seed = 7,
                      .top_k = 40,
                      .top_p = 0.9f,
                      .min_p = 0.1f,
                      .typical_p = 0.8f,
                      .repetition_penalty = 1.5f,
                      .presence_penalty = 1.0f,
                      .frequency_penalty = -1.0f,
                      .penalty_window = 64,
                      .logit_bias = {{{9, 2.0f}, {3, -1.0f}}},
                      .logprobs = true,
                      .top_logprobs = 4,
                      .stop = {{"END"}},
                      .include_stop_str_in_output = true,
                      .stop_token_ids = {5},
                      .min_tokens = 3};
  REQUIRE(*parse_sampling(request, tokenizer) ==
          SamplingParams{.temperature = 0.5f,
                         .seed = 7,
                         .ignore_eos = true,
                         .min_tokens = 3,
                         .includes_stop = true,
                         .top_k = 40,
                         .top_p = 0.9f,
                         .min_p = 0.1f,
                         .typical_p = 0.8f,
                         .repetition_penalty = 1.5f,
                         .presence_penalty = 1.0f,
                         .frequency_penalty = -1.0f,
                         .penalty_window = 64,
                         .top_logprobs = 4,
                         .logit_bias = {{3, -1.0f}, {9, 2.0f}},
                         .stop_tokens = {5},
                         .stop = {"END"}});
  REQUIRE(*parse_sampling({}, tokenizer) == SamplingParams{});
}

TEST_CASE("parse sampling: a response format and a grammar exclude each other") {
  const Tokenizer tokenizer = tiny_tokenizer();
  wire::RequestSubmit request;
  request.sampling.response_format.type = "json_object";
  REQUIRE(parse_sampling(request, tokenizer)->grammar ==
          GrammarSource{GrammarKind::JsonObject, {}});
  request.sampling.response_format = {"json_schema", "{}"};
  REQUIRE(parse_sampling(request, tokenizer)->grammar ==
          GrammarSource{GrammarKind::JsonSchema, "{}"});
  request.sampling.response_format.strict = false;
  REQUIRE(parse_sampling(request, tokenizer)->grammar ==
          GrammarSource{GrammarKind::LenientJsonSchema, "{}"});
  request.sampling.grammar = "root ::= \"x\"";
  REQUIRE(parse_sampling(request, tokenizer).error().code == Errc::BadRequest);
  request.sampling.response_format = {};
  REQUIRE(parse_sampling(request, tokenizer)->grammar ==
          GrammarSource{GrammarKind::Gbnf, "root ::= \"x\""});
  request.sampling.regex = "x";
  REQUIRE(parse_sampling(request, tokenizer).error().code == Errc::BadRequest);
  request.sampling.grammar.clear();
  REQUIRE(parse_sampling(request, tokenizer)->grammar == GrammarSource{GrammarKind::Regex, "x"});
}

TEST_CASE("parse sampling: an error names the field") {
  const Tokenizer tokenizer = tiny_tokenizer();
  const std::pair<const char*, std::function<void(wire::Sampling&)>> kWrong[] = {
      {"top_logprobs", [](auto& s) { s.top_logprobs = 1; }},
      {"logit_bias", [](auto& s) { s.logit_bias.by_token[100000] = 1.0f; }},
      {"logit_bias", [](auto& s) { s.logit_bias.by_token[3] = 101.0f; }},
      {"stop_token_ids", [](auto& s) { s.stop_token_ids = {100000}; }},
      {"top_p", [](auto& s) { s.top_p = 1.5f; }},
      {"stop", [](auto& s) { s.stop.all = {""}; }},
      {"min_tokens", [](auto& s) { s.min_tokens = 129; }},
  };
  for (const auto& [field, spoil] : kWrong) {
    wire::RequestSubmit request;
    spoil(request.sampling);
    CAPTURE(field);
    const auto params = parse_sampling(request, tokenizer);
    REQUIRE(params.error().code == Errc::BadRequest);
    REQUIRE_THAT(params.error().detail, Catch::Contains(field));
  }
}

TEST_CASE("constraint compiler: all grammars share one vocabulary, and no grammar needs none") {
  const Tokenizer tokenizer = tiny_tokenizer();
  ConstraintCompiler compiler(tokenizer);
  REQUIRE_FALSE(*compiler.compile({}));
  const auto first = compiler.compile({GrammarKind::Gbnf, "root ::= \"x\""});
  const auto second = compiler.compile({GrammarKind::JsonObject, {}});
  REQUIRE(first->vocabulary == second->vocabulary);
  REQUIRE(first->vocabulary->end_tokens == std::vector<TokenId>{2});
  REQUIRE(compiler.compile({GrammarKind::Gbnf, "rot"}).error().code == Errc::BadRequest);
}

}  // namespace leasehold::testing
