/// Encodes text without special tokens. One implementation per kind of tokenizer.
///
/// Threads: any number at a time.
#pragma once

#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

class TextEncoder {
 public:
  TextEncoder() = default;
  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;
  virtual ~TextEncoder() = default;

  /// Appends the tokens of `text`, which is a whole text or the text between two special tokens.
  /// `text` is not empty and may contain any bytes. Errors: BadRequest for text that the vocabulary
  /// cannot express.
  virtual Result<void> append(std::string_view text, std::vector<TokenId>& tokens) const = 0;
};

}  // namespace leasehold
