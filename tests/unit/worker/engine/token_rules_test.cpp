#include "worker/engine/token_rules.hpp"

#include <catch2/catch.hpp>

#include "tests/support/tiny_tokenizer.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

constexpr TokenId kEnd = 2;
constexpr TokenId kAb = 259;  // the vocabulary has all bytes, "ab", "a", "cc" and others
constexpr TokenId kCc = 266;

struct Fixture {
  Tokenizer tokenizer = tiny_tokenizer();
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

TEST_CASE("token rules: an end token ends the text unless ignore_eos is set") {
  const Fixture fixture;
  const PromptRequest plain = fixture.request({});
  const TokenRules rules = fixture.rules(plain);
  REQUIRE(rules.ends_before(kEnd) == CompletionReason::EndOfSequence);
  REQUIRE_FALSE(rules.ends_before(kAb));
  const PromptRequest ignoring = fixture.request({.ignore_eos = true});
  REQUIRE_FALSE(fixture.rules(ignoring).ends_before(kEnd));
}

TEST_CASE("token rules: a stop token ends the text and is not part of it") {
  const Fixture fixture;
  const PromptRequest request = fixture.request({.ignore_eos = true, .stop_tokens = {kAb, kEnd}});
  const TokenRules rules = fixture.rules(request);
  REQUIRE(rules.ends_before(kAb) == CompletionReason::StopSequence);
  REQUIRE(rules.ends_before(kEnd) == CompletionReason::StopSequence);
  REQUIRE_FALSE(rules.ends_before(kCc));
}

TEST_CASE("token rules: a stop string is found across tokens, and across a rebind") {
  const Fixture fixture;
  const PromptRequest request = fixture.request({.stop = {"bcc"}});
  TokenRules rules = fixture.rules(request);
  rules.accept(kAb);
  REQUIRE_FALSE(rules.over());
  rules.accept(kCc);
  REQUIRE(rules.over() == CompletionReason::StopSequence);

  const PromptRequest again = fixture.request({.stop = {"bcc"}}, {kAb});
  TokenRules rebound = fixture.rules(again);
  REQUIRE_FALSE(rebound.over());
  rebound.accept(kCc);
  REQUIRE(rebound.over() == CompletionReason::StopSequence);

  const PromptRequest complete = fixture.request({.stop = {"bcc"}}, {kAb, kCc});
  REQUIRE(fixture.rules(complete).over() == CompletionReason::StopSequence);
}

TEST_CASE("token rules: without a grammar every token is allowed") {
  const Fixture fixture;
  const PromptRequest request = fixture.request({.stop = {"x"}});
  REQUIRE(fixture.rules(request).allowed() == nullptr);
}

TEST_CASE("token rules: an end token is allowed only where the grammar may end") {
  const Fixture fixture;
  const PromptRequest request = fixture.request(with_grammar(R"(root ::= "ab" "cc"*)"));
  TokenRules rules = fixture.rules(request);
  REQUIRE((*rules.allowed())->contains(kAb));
  REQUIRE((*rules.allowed())->contains(byte_token('a')));
  REQUIRE_FALSE((*rules.allowed())->contains(kCc));
  REQUIRE_FALSE((*rules.allowed())->contains(kEnd));
  rules.accept(kAb);
  REQUIRE_FALSE(rules.over());
  REQUIRE((*rules.allowed())->contains(kCc));
  REQUIRE((*rules.allowed())->contains(kEnd));
  REQUIRE_FALSE((*rules.allowed())->contains(kAb));
}

TEST_CASE("token rules: the text is over when the grammar allows no more") {
  const Fixture fixture;
  const PromptRequest request = fixture.request(with_grammar(R"(root ::= "abc")"));
  TokenRules rules = fixture.rules(request);
  rules.accept(kAb);
  REQUIRE_FALSE(rules.over());
  rules.accept(byte_token('c'));
  REQUIRE(rules.over() == CompletionReason::EndOfSequence);
}

TEST_CASE("token rules: tokens emitted before must fit the grammar") {
  const Fixture fixture;
  const PromptRequest request = fixture.request(with_grammar(R"(root ::= "ab"+)"), {kAb, kCc});
  const auto rules = TokenRules::create(request, fixture.tokenizer);
  REQUIRE(rules.error().code == Errc::BadRequest);
  REQUIRE_THAT(rules.error().detail, Catch::Contains("token 1 "));
}

TEST_CASE("token rules: rebuilt from emitted tokens, they allow the same tokens") {
  const Fixture fixture;
  const SamplingParams json{.grammar = {GrammarKind::JsonObject, {}}};
  const std::string text = R"({"a": [1, {"é": "x\n"}, -2.5e3], "b": null)";
  const PromptRequest whole = fixture.request(json);
  TokenRules going_on = fixture.rules(whole);
  std::vector<TokenId> emitted;
  for (const char byte : text) {
    const PromptRequest cut = fixture.request(json, emitted);
    TokenRules rebuilt = fixture.rules(cut);
    REQUIRE(**rebuilt.allowed() == **going_on.allowed());
    emitted.push_back(byte_token(byte));
    REQUIRE((*going_on.allowed())->contains(emitted.back()));
    going_on.accept(emitted.back());
  }
}

TEST_CASE("token rules: a grammar with too many parses is BadRequest at that token") {
  const Fixture fixture;
  std::string text = "root ::= r0";
  for (int i = 1; i < 600; ++i) text += " | r" + std::to_string(i);
  for (int i = 0; i < 600; ++i)
    text += "\nr" + std::to_string(i) + " ::= \"aab" + std::to_string(i) + "\"";
  const PromptRequest request = fixture.request(with_grammar(text));
  REQUIRE(fixture.rules(request).allowed().error().code == Errc::BadRequest);
}

}  // namespace leasehold::testing
