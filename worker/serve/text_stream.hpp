/// One request's tokens on their way to its client.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "worker/schedule/events.hpp"
#include "worker/tokenizer/stream_decoder.hpp"

namespace leasehold {

/// Lifetime: the tokenizer outlives it. Threads: the I/O thread.
class TextStream {
 public:
  /// `emitted` was delivered before (rebind): the text goes on after it.
  TextStream(std::weak_ptr<control::Peer> peer, RequestId request, const Tokenizer& tokenizer,
             std::span<const TokenId> emitted);

  /// `last`: nothing follows but the completion, so held-back bytes go out too.
  void send_token(const Token& token, bool last);
  /// `note`: what else there is to know about an end that is no error.
  void send_completed(const Completed& completed, std::string note = {});
  /// Queued, but never admitted: the reason on the wire is the error's own name.
  void send_rejected(const Error& reason);

 private:
  void notify(std::string_view method, control::Json body);

  std::weak_ptr<control::Peer> peer_;
  RequestId request_;
  StreamDecoder decoder_;
};

}  // namespace leasehold
