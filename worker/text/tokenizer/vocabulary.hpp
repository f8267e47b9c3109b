/// The tokens of a model as its file lists them, for both kinds of tokenizer.
///
/// Source: metadata keys `tokenizer.ggml.*` of the GGUF specification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/model/gguf/special_token_id.hpp"
#include "worker/text/tokenizer/special_token_finder.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

/// GGUF's token types 1 … 6, in order.
enum class TokenKind : std::uint8_t { Normal, Unknown, Control, UserDefined, Unused, Byte };

/// The differences between the kinds of tokenizer.
struct VocabularyTraits {
  /// The bytes of a token with this text, for kinds that occur in plain text.
  std::string (*piece_of)(std::string_view text, TokenKind kind);
  bool needs_types;  ///< If false, all tokens of a file without types are normal.
  /// Defaults for ids that the file does not set; kNoTokenId: no default.
  std::uint32_t unknown, bos, eos;
  bool adds_bos;
  bool requires_bos;  ///< Adds BOS even if the file says no.
  bool can_add_space_prefix;
};

struct Vocabulary {
  /// Errors: FileCorrupt for metadata that is missing or inconsistent.
  static Result<Vocabulary> read(const GgufFile& file, const VocabularyTraits& traits);

  std::uint32_t size() const { return static_cast<std::uint32_t>(texts.size()); }

  std::vector<std::string> texts;  ///< The texts of the file, unchanged.
  std::vector<TokenKind> kinds;
  std::vector<std::string> pieces;      ///< Bytes in text; empty for control and unknown tokens.
  std::size_t longest_piece_bytes = 4;  ///< An unknown token may replace a whole character.

  std::optional<TokenId> unknown, bos;
  std::vector<TokenId> end_tokens;         ///< Tokens that end the output.
  std::vector<TokenId> suppressed_tokens;  ///< Tokens that are never drawn, ascending.
  bool adds_bos = false;
  std::optional<TokenId> added_eos;  ///< EOS, if the file asks to add it to texts.
  bool adds_space_prefix = false;
  bool has_harmony = false;  ///< Has the control tokens of the harmony format.

  SpecialTokenFinder user_defined;  ///< Recognized in a plain text.
  SpecialTokenFinder special;       ///< Recognized in the prompt of a chat; includes user_defined.

 private:
  Result<void> read_tokens(const GgufFile& file, bool needs_types);
  Result<void> read_suppressed_tokens(const GgufFile& file);
  Result<void> read_special_ids(const GgufFile& file, const VocabularyTraits& traits);
  bool is_special(TokenId token) const;
  void find_harmony();
  void find_end_tokens_by_text();
  Result<void> read_pieces(const GgufFile& file, const VocabularyTraits& traits);
  void index_special(TokenId token, std::string_view chat_template);
};

/// A FileCorrupt error that begins with the file's path.
std::unexpected<Error> corrupt_vocabulary(const GgufFile& file, const std::string& what);

}  // namespace leasehold
