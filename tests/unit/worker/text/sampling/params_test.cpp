#include "worker/text/sampling/params.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

namespace leasehold {
namespace {

struct InvalidParams {
  const char* field;
  std::function<void(SamplingParams&)> mutate;
};

const InvalidParams kInvalidParams[] = {
    {"temperature", [](auto& p) { p.temperature = -0.1f; }},
    {"temperature", [](auto& p) { p.temperature = std::nanf(""); }},
    {"temperature", [](auto& p) { p.temperature = INFINITY; }},
    {"top_p", [](auto& p) { p.top_p = 1.1f; }},
    {"top_p", [](auto& p) { p.top_p = std::nanf(""); }},
    {"min_p", [](auto& p) { p.min_p = -0.1f; }},
    {"typical_p", [](auto& p) { p.typical_p = 2.0f; }},
    {"repetition_penalty", [](auto& p) { p.repetition_penalty = 0.0f; }},
    {"presence_penalty", [](auto& p) { p.presence_penalty = 2.1f; }},
    {"frequency_penalty", [](auto& p) { p.frequency_penalty = -2.1f; }},
    {"top_logprobs", [](auto& p) { p.top_logprobs = 21; }},
    {"logit_bias", [](auto& p) { p.logit_bias = {{1, 101.0f}}; }},
    {"logit_bias", [](auto& p) { p.logit_bias = {{1, 1.0f}, {1, 2.0f}}; }},
    {"logit_bias", [](auto& p) { p.logit_bias.resize(SamplingParams::kMaxLogitBiases + 1); }},
    {"stop", [](auto& p) { p.stop = {""}; }},
    {"stop", [](auto& p) { p.stop = {std::string(SamplingParams::kMaxStopBytes + 1, 'x')}; }},
    {"stop", [](auto& p) { p.stop.assign(SamplingParams::kMaxStops + 1, "x"); }},
    {"stop_token_ids", [](auto& p) { p.stop_tokens.resize(SamplingParams::kMaxStopTokens + 1); }},
    {"grammar", [](auto& p) { p.grammar.text.resize(SamplingParams::kMaxGrammarBytes + 1); }},
    {"ignore_eos",
     [](auto& p) {
       p.ignore_eos = true;
       p.grammar.kind = GrammarKind::JsonObject;
     }},
    {"min_tokens",
     [](auto& p) {
       p.min_tokens = 1;
       p.grammar.kind = GrammarKind::JsonObject;
     }},
};

}  // namespace

TEST_CASE("sampling params: a value out of range is a BadRequest naming the field") {
  for (const InvalidParams& invalid : kInvalidParams) {
    SamplingParams params;
    invalid.mutate(params);
    const Result<void> checked = check_sampling(params);
    CAPTURE(invalid.field);
    REQUIRE_FALSE(checked);
    REQUIRE(checked.error().code == Errc::BadRequest);
    REQUIRE(checked.error().detail.find(invalid.field) != std::string::npos);
  }
}

TEST_CASE("sampling params: the ends of the ranges are allowed") {
  REQUIRE(check_sampling({}));
  REQUIRE(check_sampling({.temperature = 100.0f, .top_p = 0.0f, .min_p = 1.0f}));
  REQUIRE(check_sampling({.presence_penalty = -2.0f,
                          .frequency_penalty = 2.0f,
                          .top_logprobs = 20,
                          .logit_bias = {{3, -100.0f}, {4, 100.0f}}}));
}

}  // namespace leasehold
