/// One request's tokens on their way to its client.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "worker/engine/generated_text.hpp"
#include "worker/schedule/events.hpp"

namespace leasehold {

/// Threads: the I/O thread.
class TextStream {
 public:
  /// `text` is as new. `emitted` was delivered before (rebind): the text goes on after it.
  TextStream(std::weak_ptr<control::Peer> peer, RequestId client_request_id, GeneratedText text,
             std::span<const TokenId> emitted);

  void send_token(const Token& token);
  /// With what was held back of the text, unless a lease ended it: then it may go on elsewhere.
  /// `detail`: what else there is to know about an end that is no error.
  void send_completed(const Completed& completed, std::string detail = {});
  /// Queued, but never admitted: the reason on the wire is the error's own name.
  void send_rejected(const Error& reason);

 private:
  void notify(std::string_view method, control::Json body);

  std::weak_ptr<control::Peer> peer_;
  RequestId client_request_id_;
  GeneratedText text_;
};

}  // namespace leasehold
