#include "worker/text/grammar/grammar_vocabulary.hpp"

namespace leasehold {
namespace {

std::vector<TokenId> ends_of(const Tokenizer& tokenizer) {
  std::vector<TokenId> ends;
  for (TokenId token = 0; tokenizer.contains(token); ++token)
    if (tokenizer.is_end(token)) ends.push_back(token);
  return ends;
}

PieceTrie trie_of(const Tokenizer& tokenizer) {
  std::vector<std::string_view> pieces(tokenizer.n_vocab());
  for (TokenId token = 0; tokenizer.contains(token); ++token)
    if (!tokenizer.is_end(token)) pieces[static_cast<std::size_t>(token)] = tokenizer.piece(token);
  return PieceTrie(pieces);
}

}  // namespace

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer)
    : pieces(trie_of(tokenizer)), ends(ends_of(tokenizer)) {}

}  // namespace leasehold
