/// Tokens to text, as they come.
///
/// What comes out is UTF-8 at every moment: a character spread over several tokens appears with
/// the last of them, and bytes that can become no character appear as U+FFFD, one for each maximal
/// run (Unicode 15, section 3.9). The one space that encoding puts in front of a text is taken off
/// again after a BOS token; a continuation, which has none, keeps its leading space.
///
/// Lifetime: the tokenizer outlives it. Threads: one.
#pragma once

#include <string>

#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// The text that is certain now; often empty. `token` is of the tokenizer's vocabulary.
  std::string push(TokenId token);

  /// What was held back; the decoder is as new afterwards.
  std::string finish();

 private:
  std::string take_complete_characters();

  const Tokenizer* tokenizer_;
  std::string held_;  ///< The beginning of a character, once push returns.
  bool after_bos_ = false;
};

}  // namespace leasehold
