/// A request's tokens as the text its client reads: whole characters, up to the first stop string.
///
/// The engine and the tenant's stream each follow one, over the same tokens: so they agree on where
/// the text ends without telling each other, and after a rebind both stand where they stood.
///
/// Lifetime: the tokenizer outlives it. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "worker/text/sampling/stop_finder.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"

namespace leasehold {

class GeneratedText {
 public:
  GeneratedText(const Tokenizer& tokenizer, std::vector<std::string> stops)
      : decoder_(tokenizer), finder_(std::move(stops)) {}

  /// The text that is certain now; often empty.
  std::string push(TokenId token) { return finder_.push(decoder_.push(token)); }

  /// What was held back, once no token follows.
  std::string finish() {
    std::string rest = finder_.push(decoder_.finish());
    return rest + finder_.finish();
  }

  /// A stop string has ended the text.
  bool is_stopped() const { return finder_.found(); }

 private:
  StreamDecoder decoder_;
  StopFinder finder_;
};

}  // namespace leasehold
