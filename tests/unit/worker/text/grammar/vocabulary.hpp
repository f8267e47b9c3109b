/// A small vocabulary with difficult tokens: every single byte, pieces that end inside a character,
/// pieces across several symbols of a grammar, tokens with equal bytes, tokens without bytes.
#pragma once

#include <string>
#include <vector>

#include "worker/text/grammar/piece_trie.hpp"

namespace leasehold::testing {

struct Vocabulary {
  std::vector<std::string> pieces;

  std::vector<std::string_view> views() const { return {pieces.begin(), pieces.end()}; }
  PieceTrie trie() const { return PieceTrie(views()); }
};

/// 256 bytes, then JSON-like and random pieces.
Vocabulary awkward_vocabulary(std::uint64_t seed);

}  // namespace leasehold::testing
