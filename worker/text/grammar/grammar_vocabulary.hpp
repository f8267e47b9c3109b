/// The vocabulary of a model in the form that masks need.
#pragma once

#include <memory>

#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/piece_trie.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

/// Built once per model, because sorting the pieces is slow. Threads: immutable.
struct GrammarVocabulary {
  PieceTrie pieces;                 ///< All tokens but the end tokens.
  std::vector<TokenId> end_tokens;  ///< Tokens that end a text.

  explicit GrammarVocabulary(const Tokenizer& tokenizer);
};

/// The compiled grammar of a request and its vocabulary. Empty: no restriction.
struct TextConstraint {
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const GrammarVocabulary> vocabulary;

  explicit operator bool() const { return grammar != nullptr; }
};

}  // namespace leasehold
