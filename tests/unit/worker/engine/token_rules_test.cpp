#include "worker/engine/token_rules.hpp"

#include <catch2/catch.hpp>
#include <deque>

#include "tests/support/tiny_tokenizer.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

constexpr TokenId kEnd = 2;
constexpr TokenId kAb = 259;  // the vocabulary has all bytes, "ab", "a", "cc" and others
constexpr TokenId kCc = 266;

/// The same with kAb and the end token suppressed.
Tokenizer suppressing_tokenizer() {
  const std::vector<std::int32_t> suppressed{kAb, kEnd};
  const TemporaryFile file(tiny_llama().set("tokenizer.ggml.suppress_tokens", suppressed).bytes());
  return *Tokenizer::from_metadata(*GgufFile::open(file.path()));
}

struct Fixture {
  Tokenizer tokenizer = tiny_tokenizer();
  std::optional<TokenMask> drawable = drawable_tokens(tokenizer);
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
  /// The fixture keeps the request, to which the rules refer.
  TokenRules rules(SamplingParams sampling, std::vector<TokenId> emitted = {}) const {
    requests_.push_back(request(std::move(sampling), std::move(emitted)));
    TokenRules rules(requests_.back(), tokenizer, drawable ? &*drawable : nullptr);
    prepare(rules);
    return rules;
  }
  static void prepare(TokenRules& rules) {
    WorkBudget all = WorkBudget::unlimited();
    const Result<void> prepared = rules.prepare(all);
    INFO((prepared ? "" : prepared.error().detail));
    REQUIRE(prepared);
    REQUIRE(rules.is_ready());
  }
  static TokenMask allowed(TokenRules& rules) {
    prepare(rules);
    return *rules.allowed();
  }

 private:
  mutable std::deque<PromptRequest> requests_;
};

/// Checks that preparing the rules ends with BadRequest, and returns the budget that it used.
WorkBudget check_refused(TokenRules& rules, const auto& detail) {
  WorkBudget all = WorkBudget::unlimited();
  const Result<void> prepared = rules.prepare(all);
  REQUIRE_FALSE(prepared);
  CHECK(prepared.error().code == Errc::BadRequest);
  CHECK_THAT(prepared.error().detail, detail);
  return all;
}

/// Prepares in slices and returns how many there were.
int prepare_in_slices(TokenRules& rules, std::size_t units) {
  int slices = 0;
  for (; !rules.is_ready(); ++slices) {
    WorkBudget slice{units};
    REQUIRE(rules.prepare(slice));
    REQUIRE((rules.is_ready() || slice.spent >= units));
  }
  return slices;
}

/// After each letter 2 000 copies of a rule that has 16 000 ways to be empty.
std::string bomb() {
  std::string text = "root ::= ([a-z]";
  for (int i = 0; i < 2000; ++i) text += " e";
  return text + ")*\ne ::= " + std::string(16'000, '|');
}

SamplingParams with_grammar(std::string text) {
  return {.grammar = {GrammarKind::Gbnf, std::move(text)}};
}

}  // namespace

TEST_CASE("token rules: an end token ends the text unless ignore_eos is set") {
  const Fixture fixture;
  const TokenRules rules = fixture.rules({});
  REQUIRE(rules.ends_before(kEnd) == CompletionReason::EndOfSequence);
  REQUIRE_FALSE(rules.ends_before(kAb));
  REQUIRE_FALSE(fixture.rules({.ignore_eos = true}).ends_before(kEnd));
}

TEST_CASE("token rules: a stop token ends the text and is not part of it") {
  const Fixture fixture;
  const TokenRules rules = fixture.rules({.ignore_eos = true, .stop_tokens = {kAb, kEnd}});
  REQUIRE(rules.ends_before(kAb) == CompletionReason::StopSequence);
  REQUIRE(rules.ends_before(kEnd) == CompletionReason::StopSequence);
  REQUIRE_FALSE(rules.ends_before(kCc));
}

TEST_CASE("token rules: a stop string is found across tokens, and across a rebind") {
  const Fixture fixture;
  TokenRules rules = fixture.rules({.stop = {"bcc"}});
  rules.accept(kAb);
  REQUIRE_FALSE(rules.over());
  rules.accept(kCc);
  REQUIRE(rules.over() == CompletionReason::StopSequence);

  TokenRules rebound = fixture.rules({.stop = {"bcc"}}, {kAb});
  REQUIRE_FALSE(rebound.over());
  rebound.accept(kCc);
  REQUIRE(rebound.over() == CompletionReason::StopSequence);

  REQUIRE(fixture.rules({.stop = {"bcc"}}, {kAb, kCc}).over() == CompletionReason::StopSequence);
}

TEST_CASE("token rules: without a grammar every token is allowed") {
  const Fixture fixture;
  REQUIRE(fixture.rules({.stop = {"x"}}).allowed() == nullptr);
}

TEST_CASE("token rules: the tokens that the model file suppresses are never allowed") {
  Fixture fixture;
  fixture.tokenizer = suppressing_tokenizer();
  fixture.drawable = drawable_tokens(fixture.tokenizer);
  TokenRules free = fixture.rules({});
  REQUIRE(free.allowed() != nullptr);
  CHECK(free.allowed()->count() == fixture.tokenizer.n_vocab() - 2);
  CHECK_FALSE(free.allowed()->contains(kAb));
  TokenRules with_minimum = fixture.rules({.ignore_eos = true, .min_tokens = 1});
  CHECK_FALSE(with_minimum.allowed()->contains(kEnd));
  with_minimum.accept(kCc);
  CHECK_FALSE(Fixture::allowed(with_minimum).contains(kAb));
  TokenRules with_grammar =
      fixture.rules({.grammar = {GrammarKind::Gbnf, "root ::= \"ab\" | \"cc\""}});
  CHECK_FALSE(with_grammar.allowed()->contains(kAb));
  CHECK(with_grammar.allowed()->contains(kCc));
}

TEST_CASE("token rules: an end token is allowed only where the grammar may end") {
  const Fixture fixture;
  TokenRules rules = fixture.rules(with_grammar(R"(root ::= "ab" "cc"*)"));
  REQUIRE(rules.allowed()->contains(kAb));
  REQUIRE(rules.allowed()->contains(byte_token('a')));
  REQUIRE_FALSE(rules.allowed()->contains(kCc));
  REQUIRE_FALSE(rules.allowed()->contains(kEnd));
  rules.accept(kAb);
  REQUIRE_FALSE(rules.over());
  const TokenMask after = Fixture::allowed(rules);
  REQUIRE(after.contains(kCc));
  REQUIRE(after.contains(kEnd));
  REQUIRE_FALSE(after.contains(kAb));
}

TEST_CASE("token rules: the text is over when the grammar allows no more") {
  const Fixture fixture;
  TokenRules rules = fixture.rules(with_grammar(R"(root ::= "abc")"));
  rules.accept(kAb);
  REQUIRE_FALSE(rules.over());
  rules.accept(byte_token('c'));
  REQUIRE(rules.over() == CompletionReason::EndOfSequence);
}

TEST_CASE("token rules: tokens emitted before must fit the grammar") {
  const Fixture fixture;
  const PromptRequest request = fixture.request(with_grammar(R"(root ::= "ab"+)"), {kAb, kCc});
  TokenRules rules(request, fixture.tokenizer, nullptr);
  check_refused(rules, Catch::StartsWith("emitted token 1 does not fit the grammar"));
}

TEST_CASE("token rules: rebuilt from emitted tokens, they allow the same tokens") {
  const Fixture fixture;
  const SamplingParams json{.grammar = {GrammarKind::JsonObject, {}}};
  const std::string text = R"({"a": [1, {"é": "x\n"}, -2.5e3], "b": null)";
  TokenRules going_on = fixture.rules(json);
  std::vector<TokenId> emitted;
  for (const char byte : text) {
    TokenRules rebuilt = fixture.rules(json, emitted);
    const TokenMask allowed = Fixture::allowed(going_on);
    REQUIRE(*rebuilt.allowed() == allowed);
    emitted.push_back(byte_token(byte));
    REQUIRE(allowed.contains(emitted.back()));
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
  TokenRules rules(request, fixture.tokenizer, nullptr);
  check_refused(rules, Catch::Contains("parses of this text"));
}

TEST_CASE("token rules: the size of the slices changes no mask") {
  const Fixture fixture;
  const std::string text = R"({"a": [1, {"é": "x"}, -2.5e3], "b")";
  for (const std::size_t units : {std::size_t{1}, std::size_t{7}, std::size_t{500}}) {
    CAPTURE(units);
    const PromptRequest whole = fixture.request({.grammar = {GrammarKind::JsonObject, {}}});
    TokenRules at_once = fixture.rules(whole.sampling);
    TokenRules sliced(whole, fixture.tokenizer, nullptr);
    std::vector<TokenId> emitted;
    for (const char byte : text) {
      prepare_in_slices(sliced, units);
      REQUIRE(*sliced.allowed() == Fixture::allowed(at_once));
      const PromptRequest cut = fixture.request(whole.sampling, emitted);
      TokenRules rebuilt(cut, fixture.tokenizer, nullptr);
      REQUIRE(prepare_in_slices(rebuilt, units) > 0);
      REQUIRE(*rebuilt.allowed() == *sliced.allowed());
      emitted.push_back(byte_token(byte));
      at_once.accept(emitted.back());
      sliced.accept(emitted.back());
    }
  }
}

TEST_CASE("token rules: a token of an expensive grammar ends with BadRequest naming the rule") {
  const Fixture fixture;
  const PromptRequest request = fixture.request(with_grammar(bomb()));
  TokenRules rules(request, fixture.tokenizer, nullptr);
  const WorkBudget all = check_refused(
      rules, Catch::Contains("units of work for a token") && Catch::Contains("in rule 'e'; "));
  CHECK(all.spent >= TokenRules::kTokenUnits);
  CHECK(all.spent < TokenRules::kTokenUnits + 2 * GrammarMatcher::kMaxStacks);
}

TEST_CASE("token rules: a slice of an expensive grammar is bounded") {
  const Fixture fixture;
  const PromptRequest request = fixture.request(with_grammar(bomb()));
  TokenRules rules(request, fixture.tokenizer, nullptr);
  for (std::size_t slices = 1; slices <= 100; ++slices) {
    WorkBudget slice{1000};
    REQUIRE(rules.prepare(slice));
    REQUIRE_FALSE(rules.is_ready());
    REQUIRE(slice.spent >= 1000);
    REQUIRE(slice.spent < 1000 + 2 * GrammarMatcher::kMaxStacks);
  }
}

TEST_CASE("token rules: nested repetitions are refused before they take the budget") {
  const Fixture fixture;
  const PromptRequest request =
      fixture.request(with_grammar(R"(root ::= ((("a"{0,99}){0,99}){0,99}){0,99})"));
  TokenRules rules(request, fixture.tokenizer, nullptr);
  const WorkBudget all = check_refused(rules, Catch::Contains("rule 'root'"));
  CHECK(all.spent < TokenRules::kTokenUnits + 2 * GrammarMatcher::kMaxStacks);
}

TEST_CASE("token rules: what a budget allowed it allows again after a rebind") {
  const Fixture fixture;
  const std::string text = R"({"a": [1, {"é": "x\n"}, -2.5e3], "b": null, "c": [[[[0]]]]})";
  const PromptRequest whole = fixture.request({.grammar = {GrammarKind::JsonObject, {}}});
  std::size_t most = 0;
  TokenRules measured(whole, fixture.tokenizer, nullptr);
  for (const char byte : text) {
    WorkBudget all = WorkBudget::unlimited();
    REQUIRE(measured.prepare(all));
    most = std::max(most, all.spent);
    measured.accept(byte_token(byte));
  }
  TokenRules tight(whole, fixture.tokenizer, nullptr, most + 1);
  TokenRules too_tight(whole, fixture.tokenizer, nullptr, most / 2);
  bool was_refused = false;
  std::vector<TokenId> emitted;
  for (const char byte : text) {
    const PromptRequest cut = fixture.request(whole.sampling, emitted);
    TokenRules rebuilt(cut, fixture.tokenizer, nullptr, most + 1);
    Fixture::prepare(rebuilt);
    Fixture::prepare(tight);
    WorkBudget all = WorkBudget::unlimited();
    was_refused = was_refused || !too_tight.prepare(all);
    emitted.push_back(byte_token(byte));
    tight.accept(emitted.back());
    if (!was_refused) too_tight.accept(emitted.back());
  }
  CHECK(was_refused);
}

TEST_CASE("token rules: before min_tokens neither end tokens nor stop tokens are allowed") {
  const Fixture fixture;
  TokenRules rules = fixture.rules({.min_tokens = 2, .stop_tokens = {kAb}});
  for (int i = 0; i < 2; ++i) {
    CAPTURE(i);
    REQUIRE_FALSE(rules.allowed()->contains(kEnd));
    REQUIRE_FALSE(rules.allowed()->contains(kAb));
    REQUIRE(rules.allowed()->contains(kCc));
    rules.accept(kCc);
  }
  REQUIRE(rules.allowed() == nullptr);
}

TEST_CASE("token rules: with ignore_eos an end token is allowed before min_tokens") {
  const Fixture fixture;
  REQUIRE(fixture.rules({.ignore_eos = true, .min_tokens = 2}).allowed()->contains(kEnd));
}

TEST_CASE("token rules: min_tokens counts the tokens emitted before a rebind") {
  const Fixture fixture;
  TokenRules rules = fixture.rules({.min_tokens = 2}, {kCc});
  REQUIRE(rules.allowed() != nullptr);
  rules.accept(kCc);
  REQUIRE(rules.allowed() == nullptr);
}

TEST_CASE("token rules: tokens that are put back do not count for min_tokens") {
  const Fixture fixture;
  TokenRules rules = fixture.rules({.min_tokens = 1});
  const TokenRules::Mark mark = rules.mark();
  rules.accept(kCc);
  REQUIRE(rules.allowed() == nullptr);
  rules.return_to(mark);
  REQUIRE(rules.allowed() != nullptr);
}

TEST_CASE("token rules: a stop string ends the text only behind min_tokens, also after a rebind") {
  const Fixture fixture;
  const SamplingParams sampling{.min_tokens = 2, .stop = {"b", "abcc"}};
  TokenRules rules = fixture.rules(sampling);
  rules.accept(kAb);
  rules.accept(kAb);
  REQUIRE_FALSE(rules.over());
  TokenRules rebound = fixture.rules(sampling, {kAb, kAb});
  REQUIRE_FALSE(rebound.over());
  // "abcc" began before, and ends behind.
  rules.accept(kCc);
  rebound.accept(kCc);
  REQUIRE(rules.over() == CompletionReason::StopSequence);
  REQUIRE(rebound.over() == CompletionReason::StopSequence);
}

}  // namespace leasehold::testing
