/// A request's tokens as the text that its client reads: whole characters, up to the first stop
/// string that is completed by a token after the first `min_tokens`.
///
/// The engine and the client's stream each keep a GeneratedText of the same tokens, so both find
/// the same end of the text without a message between them, also after a rebind.
///
/// Lifetime: the tokenizer outlives the object. Threads: one.
#pragma once

#include <string>

#include "worker/text/sampling/params.hpp"
#include "worker/text/sampling/stop_finder.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"

namespace leasehold {

class GeneratedText {
 public:
  GeneratedText(const Tokenizer& tokenizer, const SamplingParams& sampling)
      : decoder_(tokenizer),
        finder_(sampling.stop, sampling.includes_stop),
        min_tokens_(sampling.min_tokens) {}

  /// Appends a token and returns the text that has become final, which is often empty.
  std::string push(TokenId token) {
    ++n_tokens_;
    return finder_.push(decoder_.push(token), may_stop());
  }

  /// Returns the text held back. Precondition: no token follows.
  std::string finish() {
    std::string rest = finder_.push(decoder_.finish(), may_stop());
    return rest + finder_.finish();
  }

  /// True when a stop string has ended the text.
  bool is_stopped() const { return finder_.found(); }

 private:
  bool may_stop() const { return n_tokens_ > min_tokens_; }

  StreamDecoder decoder_;
  StopFinder finder_;
  std::size_t min_tokens_;
  std::size_t n_tokens_ = 0;
};

}  // namespace leasehold
