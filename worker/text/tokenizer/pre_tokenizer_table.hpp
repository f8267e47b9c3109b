/// The pre-tokenizers that `tokenizer.ggml.pre` can name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leasehold {

/// What a word consists of before its first merge.
enum class BpeUnit : std::uint8_t {
  Byte,       ///< The file writes tokens in GPT-2's byte alphabet.
  Character,  ///< The file writes tokens as text, with U+2581 for a space.
};

struct PreTokenizerRow {
  std::string_view name;
  std::span<const char* const> expressions;  ///< Each splits the pieces of the one before.
  bool ignores_merges = false;  ///< A word that is a token stays whole; its merges are skipped.
  bool adds_bos = false;        ///< Default for files without `tokenizer.ggml.add_bos_token`.
  bool requires_bos = false;    ///< Adds BOS even if the file says no; early files did.
  bool normalizes_nfc = false;  ///< Default for files without `tokenizer.ggml.normalizer.nfc`.
  BpeUnit unit = BpeUnit::Byte;
};

/// Returns null for an unknown name.
const PreTokenizerRow* find_pre_tokenizer(std::string_view name);

/// All names with commas between them, for error messages.
std::string known_pre_tokenizers();

}  // namespace leasehold
