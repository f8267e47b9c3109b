/// A request's tokens as the text its client reads: whole characters, up to the first stop string.
///
/// The engine and the client's stream each keep one over the same tokens. So they agree where the
/// text ends without a message, also after a rebind.
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

  /// Appends a token and returns the text that is final now; often empty.
  std::string push(TokenId token) { return finder_.push(decoder_.push(token)); }

  /// Returns the text held back. Precondition: no token follows.
  std::string finish() {
    std::string rest = finder_.push(decoder_.finish());
    return rest + finder_.finish();
  }

  /// True when a stop string has ended the text.
  bool is_stopped() const { return finder_.found(); }

 private:
  StreamDecoder decoder_;
  StopFinder finder_;
};

}  // namespace leasehold
