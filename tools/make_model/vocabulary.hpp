/// Generates vocabularies of any size. Their tokens can spell every byte, and merges of smaller
/// tokens lead to every word. Pure.
///
/// Order of the tokens. SentencePiece (`token_*`): three control tokens, the bytes, characters,
/// words. Byte-level (`byte_level_*`): the bytes, one control token, words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::make_model {

/// Token types of GGUF.
enum class TokenKind : std::int32_t { Normal = 1, Unknown = 2, Control = 3, Byte = 6 };

inline constexpr std::uint32_t kUnknownToken = 0;
inline constexpr std::uint32_t kBosToken = 1;
inline constexpr std::uint32_t kEosToken = 2;

/// The text of a token, distinct for each `token` below a million.
std::string token_text(std::uint32_t token);

/// The merge score: earlier pieces merge first.
float token_score(std::uint32_t token);

TokenKind token_kind(std::uint32_t token);

/// The end-of-text token; the words follow it.
inline constexpr std::uint32_t kByteLevelEnd = 256;

/// The text of a byte-level token; token b below 256 is byte b. Written in GPT-2's alphabet, where
/// a space is "Ġ". Source: GPT-2's encoder.
std::string byte_level_text(std::uint32_t token);

/// The merges of a vocabulary of `n_tokens`: the two parts of each word (a token above
/// kByteLevelEnd) with a space between them. Earlier words merge first. A word whose second part is
/// not in the vocabulary has no merge, so no text is encoded as it.
std::vector<std::string> byte_level_merges(std::uint32_t n_tokens);

}  // namespace leasehold::make_model
