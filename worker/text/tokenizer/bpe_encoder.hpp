/// BPE by rank: neighbouring bytes of a word merge, lowest rank first; in Gemma 4, characters.
///
/// The pre-tokenizer splits the text into words. Each byte or character of a word begins as a
/// token. Then the neighbouring pair that comes first in the model's list of merges becomes one
/// token, again and again until no pair is listed. A character without a token becomes its byte
/// tokens, such as `<0xE2>`.
/// Source: GPT-2's encoder (Radford et al. 2019); metadata keys `tokenizer.ggml.*` of the GGUF
/// specification.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "worker/text/tokenizer/pre_tokenizer.hpp"
#include "worker/text/tokenizer/pre_tokenizer_table.hpp"
#include "worker/text/tokenizer/symbol_merger.hpp"
#include "worker/text/tokenizer/text_encoder.hpp"
#include "worker/text/tokenizer/vocabulary.hpp"

namespace leasehold {

class BpeEncoder : public TextEncoder {
 public:
  /// The pre-tokenizer that the file names. Errors: UnsupportedModel for a name not in the table.
  static Result<const PreTokenizerRow*> pre_tokenizer_of(const GgufFile& file);

  static VocabularyTraits traits(const PreTokenizerRow& row);

  /// Errors: FileCorrupt for merges that do not join two tokens to a third, and for characters
  /// without byte tokens and without an unknown token.
  static Result<std::unique_ptr<BpeEncoder>> create(const GgufFile& file,
                                                    const PreTokenizerRow& row,
                                                    std::shared_ptr<const Vocabulary> vocabulary);

  /// A byte without a token becomes the unknown token; without an unknown token it is a BadRequest.
  Result<void> append(std::string_view text, std::vector<TokenId>& tokens) const override;

 private:
  using Merge = SymbolMerger::Merge;

  explicit BpeEncoder(PreTokenizer pre_tokenizer) : pre_tokenizer_(std::move(pre_tokenizer)) {}
  void index_tokens();
  Result<void> read_merges(const GgufFile& file);
  std::optional<TokenId> find_token(std::string_view text) const;
  void append_word(std::string_view word, SymbolMerger& symbols,
                   std::vector<TokenId>& tokens) const;
  std::size_t unit_size(std::string_view text) const;
  /// kNoToken if the vocabulary has none.
  TokenId unit_token(std::string_view unit) const;

  PreTokenizer pre_tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  BpeUnit unit_ = BpeUnit::Byte;
  bool ignores_merges_ = false;
  bool normalizes_nfc_ = false;
  std::array<TokenId, 256> by_byte_{};
  /// Normal tokens by their bytes; the keys are views of pieces of vocabulary_.
  boost::unordered_flat_map<std::string_view, TokenId> by_bytes_;
  boost::unordered_flat_map<std::uint64_t, Merge> merges_;  ///< Keyed by pair_of the two token ids.
};

}  // namespace leasehold
