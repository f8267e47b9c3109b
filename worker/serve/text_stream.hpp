/// Sends one request's tokens and its end to the client.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "worker/engine/generated_text.hpp"
#include "worker/schedule/events.hpp"

namespace leasehold {

/// Threads: that of the tenants' sockets.
class TextStream {
 public:
  /// `text` is new. After a rebind, `emitted` was delivered before and the text continues after it.
  TextStream(std::weak_ptr<control::Peer> peer, RequestId client_request_id, GeneratedText text,
             std::span<const TokenId> emitted);

  void send_token(const Token& token);
  /// What the client has left unread, of all its streams on the connection.
  std::size_t unread_output_bytes() const;
  /// Sends the end, with the text held back. After a revocation that text is not sent, because the
  /// request may continue elsewhere. `detail` explains an end without an error.
  void send_completed(const Completed& completed, std::string detail = {});
  void send_preempted(const Preempted& preempted);
  /// Sends the end of a request that was never admitted; its reason is the name of the error.
  void send_rejected(const AdmissionRejected& rejected);

 private:
  void notify(std::string_view method, control::Json body);

  std::weak_ptr<control::Peer> peer_;
  RequestId client_request_id_;
  GeneratedText text_;
};

}  // namespace leasehold
