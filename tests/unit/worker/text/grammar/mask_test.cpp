// Compares the mask of a state with Earley's recognizer on every piece.
#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "tests/unit/worker/text/grammar/earley.hpp"
#include "tests/unit/worker/text/grammar/vocabulary.hpp"
#include "worker/text/grammar/compile.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"

namespace leasehold::testing {
namespace {

using State = GrammarMatcher::State;

TokenMask brute_force_mask(const Vocabulary& vocabulary, const Earley& earley) {
  TokenMask mask(vocabulary.pieces.size());
  for (std::size_t token = 0; token < vocabulary.pieces.size(); ++token) {
    const std::string& piece = vocabulary.pieces[token];
    Earley tried = earley;
    if (!piece.empty() && tried.push(piece)) mask.add(static_cast<TokenId>(token));
  }
  return mask;
}

/// Walks at random along allowed tokens and compares at every step.
void compare_along_walk(const GrammarSource& source, std::uint64_t seed, int steps) {
  const Vocabulary vocabulary = awkward_vocabulary(seed);
  const PieceTrie trie = vocabulary.trie();
  const auto grammar = compile_grammar(source);
  REQUIRE(grammar);
  GrammarMatcher matcher(*grammar);
  Earley earley(**grammar);
  SeededRandom random(seed);
  State state = matcher.start();
  for (int step = 0; step < steps; ++step) {
    CAPTURE(source.text, seed, step);
    REQUIRE(matcher.may_end(state) == earley.may_end());
    const TokenMask mask = trie_mask(trie, matcher, state);
    REQUIRE(mask == brute_force_mask(vocabulary, earley));
    const std::vector<TokenId> allowed = tokens_of(mask);
    REQUIRE(matcher.must_end(state) == (allowed.empty() && matcher.may_end(state)));
    if (allowed.empty()) return;
    // Prefers longer pieces, which are at the end of the vocabulary.
    const std::uint64_t back = std::min(random.below(allowed.size()), random.below(allowed.size()));
    const std::string& piece =
        vocabulary.pieces[static_cast<std::size_t>(allowed[allowed.size() - 1 - back])];
    REQUIRE(earley.push(piece));
    for (const char c : piece) state = matcher.next(state, static_cast<std::uint8_t>(c));
    state = matcher.retain(state).first;
  }
}

}  // namespace

TEST_CASE("mask: it allows exactly the possible tokens, also for ambiguous grammars") {
  const char* kGrammars[] = {
      R"(root ::= ("a" | "ab" | "b" | "ba")* "!"?)",
      "root ::= e\ne ::= t (\"-\" t)*\nt ::= [0-9]+ | \"[\" e \"]\" | t2\nt2 ::= [0-9] [0-9]",
      R"(root ::= [^ -~]* [日-本é] .{0,4} "a"+)",
      "root ::= \"{\" (root (\",\" root)*)? \"}\" | \"\\\"\" [ab]{0,3} \"\\\"\"",
      R"(root ::= ("a"* "b"?)* ("," | "" ))",
  };
  for (const char* text : kGrammars)
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      compare_along_walk({GrammarKind::Gbnf, text}, seed, 12);
}

TEST_CASE("mask: it allows exactly the possible tokens in JSON") {
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    compare_along_walk({GrammarKind::JsonObject, ""}, seed, 14);
  const std::string schema =
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":3},
    "a":{"type":"integer","minimum":-12,"maximum":120},"d":{"type":"string","format":"date"}},
    "required":["a"],"additionalProperties":{"enum":[true,"ab",null]}})";
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    compare_along_walk({GrammarKind::JsonSchema, schema}, seed, 14);
}

TEST_CASE("mask: a walk in slices finds the same tokens, one unit per node beside the states") {
  const Vocabulary vocabulary = awkward_vocabulary(3);
  const PieceTrie trie = vocabulary.trie();
  const auto grammar = compile_grammar({GrammarKind::JsonObject, ""});
  GrammarMatcher whole(*grammar);
  const TokenMask expected = trie_mask(trie, whole, whole.start());
  GrammarMatcher divided(*grammar);
  TokenMask mask(trie.n_vocab());
  auto walk = trie.walk_from(divided.start());
  std::size_t units = 0;
  for (bool is_whole = false; !is_whole;) {
    WorkBudget one{1};
    is_whole = trie.advance(walk, divided, mask, one);
    units += one.spent;
  }
  REQUIRE(mask == expected);
  WorkBudget known = WorkBudget::unlimited();
  auto again = trie.walk_from(divided.start());
  REQUIRE(trie.advance(again, divided, mask, known));
  REQUIRE(known.spent <= trie.node_count());
  REQUIRE(units > known.spent);
}

TEST_CASE("mask: tokens without bytes are forbidden, tokens with equal bytes are treated alike") {
  Vocabulary vocabulary{{"a", "", "ab", "ab", "b", "abc", "c"}};
  const auto grammar = compile_grammar({GrammarKind::Gbnf, R"(root ::= "abd" | "a" "b" "b")"});
  GrammarMatcher matcher(*grammar);
  const TokenMask mask = trie_mask(vocabulary.trie(), matcher, matcher.start());
  const std::vector<bool> expected{true, false, true, true, false, false, false};
  for (TokenId token = 0; token < 7; ++token)
    REQUIRE(mask.contains(token) == expected[static_cast<std::size_t>(token)]);
}

}  // namespace leasehold::testing
