/// Turns one request's tokens and its end into messages and sends them to the client. Without a
/// peer nothing is sent, and the caller passes the returned messages to ResumableStreams.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ipc/control/messages.hpp"
#include "ipc/control/transport/peer.hpp"
#include "worker/schedule/events.hpp"
#include "worker/text/sampling/generated_text.hpp"

namespace leasehold {

/// Sends a token. Most tokens are written directly as a line, without building a tree of JSON
/// values.
void notify_token(control::Peer& peer, const wire::TokenEmitted& token);

/// Threads: that of the tenants' sockets.
class TextStream {
 public:
  /// Precondition: `text` has no tokens yet.
  TextStream(std::weak_ptr<control::Peer> peer, RequestId client_request_id, GeneratedText text);

  /// Appends tokens that were delivered earlier. Called at most once, before any other token.
  /// Returns the messages for these tokens, without logprobs.
  std::vector<wire::TokenEmitted> continue_after(std::span<const TokenId> emitted);

  wire::TokenEmitted send_token(const Token& token);
  void send_prompt_logprobs(const PromptLogprobs& logprobs);
  /// Unread output bytes of the client's connection, over all its streams.
  std::size_t unread_output_bytes() const;
  /// Sends the end, with the text that was held back. After a revocation that text is not sent,
  /// because the request may continue elsewhere. `detail` explains an end without an error.
  wire::RequestCompleted send_completed(const Completed& completed, std::string detail = {});
  void send_preempted(const Preempted& preempted);
  /// Sends the end of a request that was never admitted; the reason is the name of the error.
  wire::RequestCompleted send_rejected(const AdmissionRejected& rejected);

 private:
  template <class Message>
  void notify(const Message& message);

  std::weak_ptr<control::Peer> peer_;
  RequestId client_request_id_;
  GeneratedText text_;
};

}  // namespace leasehold
