/// Converts text to tokens and back, as the model file defines. The entry point of this folder.
///
/// Lifetime: independent of the file; copies share their data.
/// Threads: any number at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "worker/text/marked_text.hpp"
#include "worker/text/tokenizer/text_encoder.hpp"
#include "worker/text/tokenizer/token_id.hpp"
#include "worker/text/tokenizer/vocabulary.hpp"

namespace leasehold {

/// How `encode` reads "<s>" in a plain text: as three characters, or as the control token that the
/// sender asked for.
enum class SpecialTokens : std::uint8_t { AsText, AsTokens };

class Tokenizer {
 public:
  /// Errors: UnsupportedModel with the name of an unknown tokenizer or pre-tokenizer; FileCorrupt
  /// for metadata that is missing or inconsistent.
  static Result<Tokenizer> from_metadata(const GgufFile& file);

  /// Encodes any bytes. The result begins with BOS if the model asks for it; `AsTokens` text that
  /// begins with BOS does not get a second one. User-defined tokens are recognized in every text.
  /// Errors: PromptTooLong for text beyond kMaxTextBytes; BadRequest for text that the vocabulary
  /// cannot express.
  Result<std::vector<TokenId>> encode(std::string_view text,
                                      SpecialTokens special = SpecialTokens::AsText) const;
  /// Encodes the prompt of a chat as with AsTokens, with one exception: the name of a control
  /// token, or of a user-defined token that the file's chat template writes, becomes that token
  /// only if the template wrote the whole name. Errors: as above.
  Result<std::vector<TokenId>> encode(const MarkedText& prompt) const;
  static constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;

  std::uint32_t n_vocab() const { return vocabulary_->size(); }
  /// Checks an id from outside. The functions below require an id that passes.
  bool contains(TokenId token) const { return token >= 0 && token < static_cast<int>(n_vocab()); }

  /// The bytes of the token in text, possibly part of a character; empty for control and unknown
  /// tokens.
  std::string_view piece(TokenId token) const;

  /// The token's name in the file, as in `AsTokens` text.
  std::string_view text(TokenId token) const;

  /// True for the tokens that end the output: end of text, of turn, of message.
  bool is_end_token(TokenId token) const;

  /// The tokens that are never drawn, ascending: `tokenizer.ggml.suppress_tokens` of the file.
  std::span<const TokenId> suppressed_tokens() const { return vocabulary_->suppressed_tokens; }

  /// The size of the longest piece.
  std::size_t longest_piece_bytes() const { return vocabulary_->longest_piece_bytes; }

  /// The end token that the file asks to add to a text. `encode` does not add it, because a
  /// generated text would end at once; an embedding of a text needs it.
  std::optional<TokenId> added_eos() const { return vocabulary_->added_eos; }
  /// True if the vocabulary has the control tokens of OpenAI's harmony format, with which a turn
  /// has several messages.
  bool has_harmony() const { return vocabulary_->has_harmony; }

  std::optional<TokenId> bos() const { return vocabulary_->bos; }
  bool adds_space_prefix() const { return vocabulary_->adds_space_prefix; }

 private:
  Tokenizer(std::shared_ptr<const Vocabulary> vocabulary,
            std::shared_ptr<const TextEncoder> encoder)
      : vocabulary_(std::move(vocabulary)), encoder_(std::move(encoder)) {}

  static Result<Tokenizer> sentencepiece(const GgufFile& file);
  static Result<Tokenizer> by_rank(const GgufFile& file);
  Result<std::vector<TokenId>> encode_with(const SpecialTokenFinder& finder, std::string_view text,
                                           std::span<const MarkedText::Range> from_template) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const TextEncoder> encoder_;
};

}  // namespace leasehold
