/// Small vocabularies with known answers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/gguf_builder.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {

/// GGUF's numbers of token kinds.
inline constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5,
                     kByte = 6;

struct NamedToken {
  std::string text;
  int type;
  float score = 0.0f;  ///< For SentencePiece.
};

/// Ids of the tokenizer of tiny_llama.
inline constexpr TokenId kBos = 1, kEos = 2, kAb = 259, kMarkAb = 260, kMarkA = 261, kB = 263,
                         kC = 264, kMark = 265, kCc = 266;
constexpr TokenId byte_token(int byte) {
  return 3 + byte;
}

/// Bytes in the byte alphabet.
std::string encode_byte_alphabet(std::string_view bytes);

/// Token b is byte b. From 256 on: the results of the merges in order, then `more`.
GgufBuilder byte_vocabulary(const std::vector<std::pair<std::string, std::string>>& merges,
                            const std::vector<NamedToken>& more = {},
                            std::string_view pre = "gpt-2");

/// The result of Tokenizer::from_metadata.
Result<Tokenizer> tokenizer_of(const GgufBuilder& builder);

/// The pieces of the tokens of `text`, or names for tokens without a piece, joined by "|".
std::string tokens_of(const GgufBuilder& builder, std::string_view text,
                      SpecialTokens special = SpecialTokens::AsText);
/// Those of the prompt of a chat.
std::string tokens_of(const GgufBuilder& builder, const MarkedText& prompt);

/// The pieces of the tokens of `text`, joined.
std::string round_trip(const Tokenizer& tokenizer, std::string_view text);

void check_refused(const GgufBuilder& builder, Errc code, const char* expected_detail);

}  // namespace leasehold::testing
