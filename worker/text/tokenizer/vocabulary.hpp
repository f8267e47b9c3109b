/// The tokens of a model, as its file lists them, whatever kind of tokenizer uses them.
///
/// Source: metadata keys `tokenizer.ggml.*` of the GGUF specification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "worker/gguf/gguf.hpp"
#include "worker/text/tokenizer/special_token_finder.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

/// GGUF's types 1 … 6.
enum class TokenKind : std::uint8_t { Normal, Unknown, Control, UserDefined, Unused, Byte };

/// How converters write "there is none".
inline constexpr std::uint32_t kNoTokenId = UINT32_MAX;

/// What kinds of tokenizers do not have in common.
struct VocabularyTraits {
  /// The bytes that a token of this text stands for, unless its kind says otherwise.
  std::string (*piece_of)(std::string_view text, TokenKind kind);
  bool needs_types;  ///< Without types all tokens are normal.
  /// Where the file does not say; kNoTokenId where there is no such convention.
  std::uint32_t unknown, bos, eos;
  bool adds_bos;
  bool can_add_space_prefix;
};

struct Vocabulary {
  /// Errors: FileCorrupt for metadata that is missing or contradicts itself.
  static Result<Vocabulary> read(const GgufFile& file, const VocabularyTraits& traits);

  std::uint32_t size() const { return static_cast<std::uint32_t>(texts.size()); }

  std::vector<std::string> texts;  ///< As in the file.
  std::vector<TokenKind> kinds;
  std::vector<std::string> pieces;      ///< Bytes of text; none for control and unknown tokens.
  std::size_t longest_piece_bytes = 4;  ///< An unknown token may stand for a whole character.

  std::optional<TokenId> unknown, bos, eos;
  std::vector<TokenId> end_tokens;  ///< With these a model says that it is done.
  bool adds_bos = false;
  bool adds_space_prefix = false;

  SpecialTokenFinder user_defined;  ///< These are cut out of every text,
  SpecialTokenFinder special;  ///< these, which include them, only out of text that may hold them.

 private:
  Result<void> read_tokens(const GgufFile& file, bool needs_types);
  Result<void> read_special_ids(const GgufFile& file, const VocabularyTraits& traits);
  void find_end_tokens_by_text();
  Result<void> read_pieces(const GgufFile& file, const VocabularyTraits& traits);
  void index_special(TokenId token);
};

/// FileCorrupt, with the file's path in front.
std::unexpected<Error> corrupt_vocabulary(const GgufFile& file, const std::string& what);

}  // namespace leasehold
