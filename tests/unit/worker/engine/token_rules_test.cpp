#include "worker/engine/token_rules.hpp"

#include <catch2/catch.hpp>

#include "tests/support/gguf_builder.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

constexpr TokenId kEnd = 2;
constexpr TokenId kAb = 259;  // beside the bytes, the tiny vocabulary has "ab", "a", "cc" and so on
constexpr TokenId kCc = 266;
constexpr TokenId byte_token(char byte) {
  return 3 + static_cast<unsigned char>(byte);
}

struct Bench {
  Tokenizer tokenizer = [] {
    const TemporaryFile file(tiny_llama().bytes());
    return *Tokenizer::from_metadata(*GgufFile::open(file.path()));
  }();
  std::shared_ptr<const GrammarVocabulary> vocabulary =
      std::make_shared<const GrammarVocabulary>(tokenizer);

  PromptRequest request(SamplingParams sampling, std::vector<TokenId> emitted = {}) const {
    PromptRequest request{.prompt = {1}, .emitted = std::move(emitted)};
    request.sampling = std::move(sampling);
    const auto grammar = compile_grammar(request.sampling.grammar);
    REQUIRE(grammar);
    if (*grammar) request.constraint = {*grammar, vocabulary};
    return request;
  }
  TokenRules rules(const PromptRequest& request) const {
    auto rules = TokenRules::create(request, tokenizer);
    REQUIRE(rules);
    return *std::move(rules);
  }
};

SamplingParams with_grammar(std::string text) {
  return {.grammar = {GrammarKind::Gbnf, std::move(text)}};
}

}  // namespace

TEST_CASE("token rules: an end token ends the text, unless it is ignored") {
  const Bench bench;
  const PromptRequest plain = bench.request({});
  const TokenRules rules = bench.rules(plain);
  REQUIRE(rules.ends_before(kEnd) == CompletionReason::EndOfSequence);
  REQUIRE_FALSE(rules.ends_before(kAb));
  const PromptRequest ignoring = bench.request({.ignore_eos = true});
  REQUIRE_FALSE(bench.rules(ignoring).ends_before(kEnd));
}

TEST_CASE("token rules: a stop token ends the text before it") {
  const Bench bench;
  const PromptRequest request = bench.request({.ignore_eos = true, .stop_tokens = {kAb, kEnd}});
  const TokenRules rules = bench.rules(request);
  REQUIRE(rules.ends_before(kAb) == CompletionReason::StopSequence);
  REQUIRE(rules.ends_before(kEnd) == CompletionReason::StopSequence);
  REQUIRE_FALSE(rules.ends_before(kCc));
}

TEST_CASE("token rules: a stop string is found across tokens, and across a rebind") {
  const Bench bench;
  const PromptRequest request = bench.request({.stop = {"bcc"}});
  TokenRules rules = bench.rules(request);
  rules.take(kAb);
  REQUIRE_FALSE(rules.over());
  rules.take(kCc);
  REQUIRE(rules.over() == CompletionReason::StopSequence);

  const PromptRequest again = bench.request({.stop = {"bcc"}}, {kAb});
  TokenRules rebound = bench.rules(again);
  REQUIRE_FALSE(rebound.over());
  rebound.take(kCc);
  REQUIRE(rebound.over() == CompletionReason::StopSequence);

  const PromptRequest complete = bench.request({.stop = {"bcc"}}, {kAb, kCc});
  REQUIRE(bench.rules(complete).over() == CompletionReason::StopSequence);
}

TEST_CASE("token rules: without a grammar everything is allowed") {
  const Bench bench;
  const PromptRequest request = bench.request({.stop = {"x"}});
  REQUIRE(bench.rules(request).allowed() == nullptr);
}

TEST_CASE("token rules: an end token is allowed where the grammar may end, and only there") {
  const Bench bench;
  const PromptRequest request = bench.request(with_grammar(R"(root ::= "ab" "cc"*)"));
  TokenRules rules = bench.rules(request);
  REQUIRE((*rules.allowed())->contains(kAb));
  REQUIRE((*rules.allowed())->contains(byte_token('a')));
  REQUIRE_FALSE((*rules.allowed())->contains(kCc));
  REQUIRE_FALSE((*rules.allowed())->contains(kEnd));
  rules.take(kAb);
  REQUIRE_FALSE(rules.over());
  REQUIRE((*rules.allowed())->contains(kCc));
  REQUIRE((*rules.allowed())->contains(kEnd));
  REQUIRE_FALSE((*rules.allowed())->contains(kAb));
}

TEST_CASE("token rules: where the grammar has nothing more to say the text is over") {
  const Bench bench;
  const PromptRequest request = bench.request(with_grammar(R"(root ::= "abc")"));
  TokenRules rules = bench.rules(request);
  rules.take(kAb);
  REQUIRE_FALSE(rules.over());
  rules.take(byte_token('c'));
  REQUIRE(rules.over() == CompletionReason::EndOfSequence);
}

TEST_CASE("token rules: what was emitted before must fit the grammar") {
  const Bench bench;
  const PromptRequest request = bench.request(with_grammar(R"(root ::= "ab"+)"), {kAb, kCc});
  const auto rules = TokenRules::create(request, bench.tokenizer);
  REQUIRE(rules.error().code == Errc::BadRequest);
  REQUIRE_THAT(rules.error().detail, Catch::Contains("token 1 "));
}

TEST_CASE("token rules: built anew from what was emitted they allow what they allowed before") {
  const Bench bench;
  const SamplingParams json{.grammar = {GrammarKind::JsonObject, {}}};
  const std::string text = R"({"a": [1, {"é": "x\n"}, -2.5e3], "b": null)";
  const PromptRequest whole = bench.request(json);
  TokenRules going_on = bench.rules(whole);
  std::vector<TokenId> emitted;
  for (const char byte : text) {
    const PromptRequest cut = bench.request(json, emitted);
    TokenRules rebuilt = bench.rules(cut);
    REQUIRE(**rebuilt.allowed() == **going_on.allowed());
    emitted.push_back(byte_token(byte));
    REQUIRE((*going_on.allowed())->contains(emitted.back()));
    going_on.take(emitted.back());
  }
}

TEST_CASE("token rules: a grammar with too many readings is BadRequest when it gets there") {
  const Bench bench;
  std::string text = "root ::= r0";
  for (int i = 1; i < 600; ++i) text += " | r" + std::to_string(i);
  for (int i = 0; i < 600; ++i)
    text += "\nr" + std::to_string(i) + " ::= \"aab" + std::to_string(i) + "\"";
  const PromptRequest request = bench.request(with_grammar(text));
  REQUIRE(bench.rules(request).allowed().error().code == Errc::BadRequest);
}

}  // namespace leasehold::testing
