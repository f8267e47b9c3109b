/// Small byte-level vocabularies with known answers.
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
};

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

void check_refused(const GgufBuilder& builder, Errc code, const char* expected_detail);

}  // namespace leasehold::testing
