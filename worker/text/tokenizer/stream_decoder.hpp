/// Decodes tokens to text as they arrive.
///
/// The output is always UTF-8. A character that spans several tokens appears with the last of them.
/// Invalid bytes appear as U+FFFD, one per maximal subpart (Unicode 15, section 3.9). The space
/// that encoding puts in front of a text is removed after a BOS token; a continuation has no BOS
/// and keeps its leading space.
///
/// Lifetime: the tokenizer outlives it. Threads: one.
#pragma once

#include <string>

#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// Returns the new complete characters; often empty. `token` is in the vocabulary.
  std::string push(TokenId token);

  /// Returns U+FFFD if an incomplete character was held back. Resets the decoder.
  std::string finish();

 private:
  std::string take_complete_characters();

  const Tokenizer* tokenizer_;
  std::string held_;  ///< The incomplete character after push.
  bool after_bos_ = false;
};

}  // namespace leasehold
