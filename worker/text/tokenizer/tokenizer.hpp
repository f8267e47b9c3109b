/// Text to tokens and back, as the model file says: the one door to this room.
///
/// Lifetime: independent of the file it was made from; copies share what they hold.
/// Threads: any number may use one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "worker/gguf/gguf.hpp"
#include "worker/text/tokenizer/text_encoder.hpp"
#include "worker/text/tokenizer/token_id.hpp"
#include "worker/text/tokenizer/vocabulary.hpp"

namespace leasehold {

/// What "<s>" in a text is. Whatever a user typed is text; only who wrote the text himself, like a
/// chat template, may mean the token.
enum class SpecialTokens : std::uint8_t { AsText, AsTokens };

class Tokenizer {
 public:
  /// Errors: UnsupportedModel for another kind of tokenizer or another way of cutting text into
  /// words, by its name; FileCorrupt for metadata that is missing or contradicts itself.
  static Result<Tokenizer> from_metadata(const GgufFile& file);

  /// Any bytes. Begins with the BOS token where the model wants one; empty text gives that alone,
  /// and `AsTokens` text that begins with BOS itself gets no second. User-defined tokens are cut
  /// out of every text. Errors: PromptTooLong for text beyond kMaxTextBytes; BadRequest for text
  /// that cannot be written in the vocabulary.
  Result<std::vector<TokenId>> encode(std::string_view text,
                                      SpecialTokens special = SpecialTokens::AsText) const;
  static constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;

  std::uint32_t n_vocab() const { return vocabulary_->size(); }
  /// For ids that come from outside; the functions below take only those for which this holds.
  bool contains(TokenId token) const { return token >= 0 && token < static_cast<int>(n_vocab()); }

  /// The bytes the token stands for in text: part of a character, perhaps; none for control and
  /// unknown tokens.
  std::string_view piece(TokenId token) const;

  /// The token's name in the file: what `AsTokens` text writes for a control token.
  std::string_view text(TokenId token) const;

  /// True for the tokens with which a model says that it is done: end of text, of turn, of message.
  bool is_end_token(TokenId token) const;

  /// No token stands for more bytes of text than this.
  std::size_t longest_piece_bytes() const { return vocabulary_->longest_piece_bytes; }

  std::optional<TokenId> bos() const { return vocabulary_->bos; }
  std::optional<TokenId> eos() const { return vocabulary_->eos; }
  bool adds_space_prefix() const { return vocabulary_->adds_space_prefix; }

 private:
  Tokenizer(std::shared_ptr<const Vocabulary> vocabulary,
            std::shared_ptr<const TextEncoder> encoder)
      : vocabulary_(std::move(vocabulary)), encoder_(std::move(encoder)) {}

  static Result<Tokenizer> sentencepiece(const GgufFile& file);
  static Result<Tokenizer> byte_level(const GgufFile& file);

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const TextEncoder> encoder_;
};

}  // namespace leasehold
