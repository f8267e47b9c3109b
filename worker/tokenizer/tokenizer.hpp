/// Text to tokens and back, for vocabularies of SentencePiece's BPE kind.
///
/// Encoding: spaces become U+2581, one more goes in front of the text, and neighbouring symbols
/// merge, best score first, leftmost first among equals, as long as their union is a token. What
/// remains without a token is written as its bytes, `<0xE2>` and so on, or as the unknown token
/// where the vocabulary lacks those. Only normal and user-defined tokens arise from text: "<s>" in
/// a prompt is three characters, never the control token.
///
/// Source: SentencePiece (Kudo & Richardson 2018, bpe_model.cc); metadata keys `tokenizer.ggml.*`
/// of the GGUF specification.
/// Lifetime: independent of the file it was made from. Threads: any number may use one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/result.hpp"
#include "worker/model/gguf.hpp"

namespace leasehold {

/// 0 … n_vocab - 1.
using TokenId = std::int32_t;

class Tokenizer {
 public:
  /// Errors: UnsupportedModel for another kind of tokenizer, by its name; FileCorrupt for
  /// metadata that is missing or contradicts itself.
  static Result<Tokenizer> from_metadata(const GgufFile& file);

  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;
  Tokenizer(const Tokenizer&) = delete;  // by_text_ points into texts_
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Any bytes: those that are not UTF-8 are written as byte tokens. Begins with the BOS token
  /// where the model wants one; empty text gives that alone.
  /// Errors: PromptTooLong for text beyond kMaxTextBytes.
  Result<std::vector<TokenId>> encode(std::string_view text) const;
  static constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;

  std::uint32_t n_vocab() const { return static_cast<std::uint32_t>(texts_.size()); }
  /// For ids that come from outside; `piece` and `is_end` take only those for which this holds.
  bool contains(TokenId token) const { return token >= 0 && token < static_cast<int>(n_vocab()); }

  /// The bytes the token stands for in text: part of a character, perhaps; none for control and
  /// unknown tokens.
  std::string_view piece(TokenId token) const;

  /// True for the tokens with which a model says that it is done.
  bool is_end(TokenId token) const;

  /// No token stands for more bytes of text than this.
  std::size_t longest_piece_bytes() const { return longest_piece_bytes_; }

  std::optional<TokenId> bos() const { return bos_; }
  bool adds_space_prefix() const { return adds_space_prefix_; }

 private:
  friend class SpmEncoder;
  enum class Kind : std::uint8_t { Normal, Unknown, Control, UserDefined, Unused, Byte };

  Tokenizer() = default;
  Result<void> read_vocabulary(const GgufFile& file);
  Result<void> read_special_ids(const GgufFile& file);
  Result<void> index_token(const GgufFile& file, TokenId token, Kind kind);

  std::vector<std::string> texts_;   ///< As in the vocabulary, with U+2581 for spaces.
  std::vector<std::string> pieces_;  ///< What they stand for.
  std::size_t longest_piece_bytes_ = 1;
  std::vector<float> scores_;
  std::unordered_map<std::string_view, TokenId> by_text_;  ///< Normal tokens.
  std::vector<TokenId> user_defined_;                      ///< Longest first.
  std::array<std::optional<TokenId>, 256> by_byte_;
  TokenId unknown_ = 0;
  std::optional<TokenId> bos_;
  std::vector<TokenId> ends_;
  bool adds_bos_ = true;
  bool adds_space_prefix_ = true;
};

/// U+2581, which stands for a space in vocabularies.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

/// `text` with every `from` replaced.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace leasehold
