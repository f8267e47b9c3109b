/// What masks need to know of a model's vocabulary.
#pragma once

#include <memory>

#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/piece_trie.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

/// Made once per model: sorting the pieces takes a while. Threads: immutable.
struct GrammarVocabulary {
  PieceTrie pieces;                 ///< Of tokens that do not end a text.
  std::vector<TokenId> end_tokens;  ///< The others.

  explicit GrammarVocabulary(const Tokenizer& tokenizer);
};

/// What a request's text must be, ready to be followed. Empty: anything.
struct TextConstraint {
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const GrammarVocabulary> vocabulary;

  explicit operator bool() const { return grammar != nullptr; }
};

}  // namespace leasehold
