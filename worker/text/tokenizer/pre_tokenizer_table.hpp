/// The ways of cutting text into words that models name in `tokenizer.ggml.pre`.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leasehold {

struct PreTokenizerRow {
  std::string_view name;
  std::span<const char* const> expressions;
  bool ignores_merges;  ///< A word that is a token is that token, whatever its merges make.
  bool adds_bos;        ///< Where the file does not say.
};

/// Null for a name that is not in the table.
const PreTokenizerRow* find_pre_tokenizer(std::string_view name);

/// All names, for messages.
std::string known_pre_tokenizers();

}  // namespace leasehold
