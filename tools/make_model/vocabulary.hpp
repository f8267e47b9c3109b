/// Made-up vocabularies of any size: they spell every byte, and every word can be reached by
/// joining smaller ones. Pure.
///
/// SentencePiece (`token_*`): three control tokens, the bytes, characters, words. Byte-level
/// (`byte_level_*`): the bytes, one control token, words.
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

/// Ends a text, and stands where the others begin.
inline constexpr std::uint32_t kByteLevelEnd = 256;

/// Token b below 256 is byte b. In the alphabet such vocabularies are written in, where a space is
/// "Ġ" (Source: GPT-2's encoder).
std::string byte_level_text(std::uint32_t token);

/// The two tokens a word (a token above kByteLevelEnd) is joined from, with a space between;
/// earlier words are joined first.
std::string byte_level_merge(std::uint32_t token);

}  // namespace leasehold::make_model
