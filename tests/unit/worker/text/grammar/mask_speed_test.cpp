// CPU time of masks; asserts nothing. Run: worker_grammar_test "[.speed]"
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <ctime>

#include "common/random.hpp"
#include "tests/unit/worker/text/grammar/vocabulary.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

using State = GrammarMatcher::State;

std::int64_t microseconds_since(std::clock_t begin) {
  return (std::clock() - begin) * 1'000'000 / CLOCKS_PER_SEC;
}

/// All bytes, then words of a few syllables with and without a leading space.
std::vector<std::string> english_like(std::size_t n) {
  constexpr std::string_view kSyllables[] = {"the", "in", "er", "an", "re", "on", "at", "en",
                                             "nd",  "ti", "es", "or", "te", "of", "ed", "is",
                                             "it",  "al", "ar", "st", "to", "nt", "ng", "se",
                                             "ha",  "as", "ou", "io", "le", "ve", "\"", "{"};
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  SeededRandom random(1);
  while (pieces.size() < n) {
    std::string piece = random.below(2) == 0 ? " " : "";
    for (std::uint64_t k = 1 + random.below(4); k > 0; --k)
      piece += kSyllables[random.below(std::size(kSyllables))];
    pieces.push_back(piece);
  }
  return pieces;
}

void report(const PieceTrie& trie, const GrammarSource& source, const std::string& text) {
  GrammarMatcher matcher(*compile_grammar(source));
  State state = matcher.start();
  for (const char c : text) state = matcher.next(state, static_cast<std::uint8_t>(c));
  TokenMask mask(trie.n_vocab());
  WorkBudget units = WorkBudget::unlimited();
  const std::clock_t first = std::clock();
  auto walk = trie.walk_from(state);
  trie.advance(walk, matcher, mask, units);
  const std::int64_t first_us = microseconds_since(first);
  constexpr int kRepeats = 20;
  const std::clock_t again = std::clock();
  for (int i = 0; i < kRepeats; ++i) mask = trie_mask(trie, matcher, state);
  WARN(fmt::format(
      "{:7} tokens, after {:22} {:7} allowed: {:7} units and {:5} us the first time, {:5} us again",
      trie.n_vocab(), text, tokens_of(mask).size(), units.spent, first_us,
      microseconds_since(again) / kRepeats));
}

}  // namespace

TEST_CASE("mask speed", "[.speed]") {
  for (const std::size_t n : {std::size_t{32000}, std::size_t{151936}}) {
    const std::vector<std::string> pieces = english_like(n);
    const std::vector<std::string_view> views(pieces.begin(), pieces.end());
    const std::clock_t begin = std::clock();
    const PieceTrie trie(views);
    WARN(fmt::format("{:7} tokens: tree of {} nodes in {} us", n, trie.node_count(),
                     microseconds_since(begin)));
    const GrammarSource json{GrammarKind::JsonObject, {}};
    report(trie, json, "");
    report(trie, json, R"({"name": "al)");
    report(trie, json, R"({"a": [[1, {"b": )");
    report(trie, json, R"({"a": 12)");
    report(trie, {GrammarKind::Gbnf, R"(root ::= "yes" | "no")"}, "");
    report(trie, {GrammarKind::Gbnf, R"(root ::= [^"]*)"}, "abc");
  }
}

}  // namespace leasehold::testing
