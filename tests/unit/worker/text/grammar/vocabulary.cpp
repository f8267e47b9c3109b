#include "tests/unit/worker/text/grammar/vocabulary.hpp"

#include <catch2/catch.hpp>

#include "common/random.hpp"

namespace leasehold::testing {

TokenMask trie_mask(const PieceTrie& trie, GrammarMatcher& matcher, GrammarMatcher::State state) {
  TokenMask mask(trie.n_vocab());
  auto walk = trie.walk_from(state);
  WorkBudget all = WorkBudget::unlimited();
  REQUIRE(trie.advance(walk, matcher, mask, all));
  REQUIRE_FALSE(matcher.overflowed());
  return mask;
}

std::vector<TokenId> tokens_of(const TokenMask& mask) {
  std::vector<TokenId> tokens;
  mask.for_each([&](TokenId token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

Vocabulary awkward_vocabulary(std::uint64_t seed) {
  Vocabulary vocabulary;
  auto& pieces = vocabulary.pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.insert(pieces.end(),
                {"",     "",         "{\"",    "\":",   "\": ",     "\",",      "},",   "}}",
                 "[[",   "]]",       "]}",     "true",  "false",    "null",     "tru",  "e,",
                 ", \"", "\"}",      "{}",     "[]",    "12",       "-1",       "0.5",  "1e",
                 "\\u",  "\\u00",    "\\\"",   "\n  ",  "\n",       "é",        "\xc3", "\xa9\"",
                 "日本", "\xe6\x97", "\xa5本", "🦙",    "\xf0\x9f", "\xa6\x99", "ab",   "abc",
                 "ab",   "name",     "id\"",   "2024-", "-02-",     "T12:",     "a\"",  "{\"a\":"});
  SeededRandom random(seed);
  for (int i = 0; i < 120; ++i) {
    std::string piece;
    for (std::uint64_t n = 2 + random.below(5); n > 0; --n)
      piece += R"({}[]",:ab01.e- \t)"[random.below(17)];
    pieces.push_back(piece);
  }
  return vocabulary;
}

}  // namespace leasehold::testing
