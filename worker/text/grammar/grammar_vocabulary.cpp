#include "worker/text/grammar/grammar_vocabulary.hpp"

namespace leasehold {
namespace {

std::vector<TokenId> end_tokens_of(const Tokenizer& tokenizer) {
  std::vector<TokenId> end_tokens;
  for (TokenId token = 0; tokenizer.contains(token); ++token)
    if (tokenizer.is_end_token(token)) end_tokens.push_back(token);
  return end_tokens;
}

PieceTrie trie_of(const Tokenizer& tokenizer) {
  std::vector<std::string_view> pieces(tokenizer.n_vocab());
  for (TokenId token = 0; tokenizer.contains(token); ++token)
    if (!tokenizer.is_end_token(token))
      pieces[static_cast<std::size_t>(token)] = tokenizer.piece(token);
  return PieceTrie(pieces);
}

}  // namespace

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer)
    : pieces(trie_of(tokenizer)), end_tokens(end_tokens_of(tokenizer)) {}

}  // namespace leasehold
