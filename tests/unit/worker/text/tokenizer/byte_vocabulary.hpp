/// Byte-level vocabularies, small enough to know every answer.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/gguf_builder.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {

/// GGUF's numbers for the kinds of tokens.
inline constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5,
                     kByte = 6;

struct NamedToken {
  std::string text;
  int type;
};

/// Bytes as byte-level vocabularies write them.
std::string encode_byte_alphabet(std::string_view bytes);

/// Token b is byte b; from 256 on follow what the merges make, in their order, then `more`.
GgufBuilder byte_vocabulary(const std::vector<std::pair<std::string, std::string>>& merges,
                            const std::vector<NamedToken>& more = {},
                            std::string_view pre = "gpt-2");

/// What `from_metadata` makes of the file.
Result<Tokenizer> tokenizer_of(const GgufBuilder& builder);

/// The names of the tokens of `text`, with "|" between; byte-level letters as their bytes.
std::string tokens_of(const GgufBuilder& builder, std::string_view text,
                      SpecialTokens special = SpecialTokens::AsText);

void check_refused(const GgufBuilder& builder, Errc code, const char* expected_detail);

}  // namespace leasehold::testing
