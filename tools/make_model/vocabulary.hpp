/// A made-up SentencePiece vocabulary of any size: it spells every byte, and every piece can be
/// reached by joining smaller pieces. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::make_model {

/// GGUF's numbers for kinds of tokens.
enum class TokenKind : std::int32_t { Normal = 1, Unknown = 2, Control = 3, Byte = 6 };

inline constexpr std::uint32_t kUnknownToken = 0;
inline constexpr std::uint32_t kBosToken = 1;
inline constexpr std::uint32_t kEosToken = 2;

/// The text of a token; different for each `token` below a million.
std::string token_text(std::uint32_t token);

/// Earlier pieces are joined first.
float token_score(std::uint32_t token);

TokenKind token_kind(std::uint32_t token);

}  // namespace leasehold::make_model
