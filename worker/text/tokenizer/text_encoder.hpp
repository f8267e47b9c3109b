/// How text in which no special token stands becomes tokens. One for each kind of tokenizer.
///
/// Threads: any number may use one.
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

  /// `text` is a whole text, or what lies between two special tokens, and never empty. Any bytes.
  /// Errors: BadRequest for text that cannot be written in this vocabulary.
  virtual Result<void> append(std::string_view text, std::vector<TokenId>& tokens) const = 0;
};

}  // namespace leasehold
