/// SentencePiece BPE: spaces become U+2581, another U+2581 is put in front of the text, and
/// neighbours merge, best score first, while their union is a token.
///
/// A character without a token becomes its byte tokens, such as `<0xE2>`, or the unknown token if
/// the vocabulary has no byte tokens. Produces normal, byte and unknown tokens only.
/// Source: SentencePiece (Kudo & Richardson 2018, bpe_model.cc, normalizer.cc).
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <optional>
#include <string>

#include "worker/text/tokenizer/symbol_merger.hpp"
#include "worker/text/tokenizer/text_encoder.hpp"
#include "worker/text/tokenizer/vocabulary.hpp"

namespace leasehold {

class SpmEncoder : public TextEncoder {
 public:
  static const VocabularyTraits kTraits;

  /// Errors: FileCorrupt for metadata that is missing or contradicts itself.
  static Result<std::unique_ptr<SpmEncoder>> create(const GgufFile& file,
                                                    std::shared_ptr<const Vocabulary> vocabulary);

  Result<void> append(std::string_view text, std::vector<TokenId>& tokens) const override;

 private:
  SpmEncoder() = default;
  Result<void> index_tokens(const GgufFile& file);
  std::string normalized(std::string_view text) const;
  TokenId token_of(std::string_view text) const;
  std::string_view next_word(std::string_view text) const;
  void append_word(std::string_view word, SymbolMerger& symbols,
                   std::vector<TokenId>& tokens) const;
  void append_bytes(std::string_view text, std::vector<TokenId>& tokens) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<float> scores_;
  /// Normal tokens; the keys are views of vocabulary_.
  boost::unordered_flat_map<std::string_view, TokenId> by_text_;
  std::array<std::optional<TokenId>, 256> by_byte_;
  bool removes_extra_spaces_ = false;
  bool merges_respect_words_ = true;  ///< No token has a space after another character.
};

}  // namespace leasehold
