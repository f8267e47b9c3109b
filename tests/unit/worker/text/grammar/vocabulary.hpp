/// A small vocabulary with difficult tokens: every single byte, pieces that end inside a character,
/// pieces across several symbols of a grammar, tokens with equal bytes, tokens without bytes.
#pragma once

#include <string>
#include <vector>

#include "worker/text/grammar/grammar_matcher.hpp"
#include "worker/text/grammar/piece_trie.hpp"

namespace leasehold::testing {

struct Vocabulary {
  std::vector<std::string> pieces;

  std::vector<std::string_view> views() const { return {pieces.begin(), pieces.end()}; }
  PieceTrie trie() const { return PieceTrie(views()); }
};

/// The tokens that the grammar allows in this state.
TokenMask trie_mask(const PieceTrie& trie, GrammarMatcher& matcher, GrammarMatcher::State state);

std::vector<TokenId> tokens_of(const TokenMask& mask);

/// 256 bytes, then JSON-like and random pieces.
Vocabulary awkward_vocabulary(std::uint64_t seed);

}  // namespace leasehold::testing
