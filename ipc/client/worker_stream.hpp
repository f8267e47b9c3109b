/// One request to a worker on one connection, until it completes or fails.
///
/// Lifetime: shared; `io` outlives it. Call close() before dropping the pointer: otherwise the
/// connection stays open in `io`. The worker cancels the request when the connection closes.
/// Threads: only the thread that runs `io`. Errors: `open` returns errors of the connection; all
/// later errors go to `on_failed`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "ipc/control/messages.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::client {

class WorkerStream : public std::enable_shared_from_this<WorkerStream> {
 public:
  /// Called in the order of arrival. Exactly one of `on_completed` and `on_failed` is called, once
  /// and last. None is called after `close()` or from within `open()`.
  struct Handlers {
    std::function<void(const wire::RequestSubmitted&)> on_submitted;
    std::function<void(wire::TokenEmitted)> on_token;
    std::function<void(wire::PromptLogprobs)> on_prompt_logprobs = nullptr;     ///< Null: ignored.
    std::function<void(const wire::RequestPreempted&)> on_preempted = nullptr;  ///< Null: ignored.
    std::function<void(const wire::RequestCompleted&)> on_completed;
    /// The worker's refusal; MalformedMessage; TimedOut when the worker does not accept the request
    /// within 10 minutes; ConnectionLost.
    std::function<void(const Error&)> on_failed;
  };

  enum class Begin { Submit, Resume };
  /// Connects to the worker's socket at `address`, authenticates with the token of the request, and
  /// submits it. With Resume it first asks the worker to continue a resumable request after the
  /// `emitted` tokens, and submits the request only if the worker does not know it
  /// (UnknownRequest). Errors: FileNotFound, ConnectionRefused, PermissionDenied.
  static Result<std::shared_ptr<WorkerStream>> open(boost::asio::io_context& io,
                                                    const std::string& address,
                                                    const wire::RequestSubmit& generate,
                                                    Handlers handlers, Begin begin = Begin::Submit);

  /// Asks the worker to end the request; `on_completed` follows. Does nothing if the request has
  /// ended.
  void cancel();
  /// Asks the worker to move the request to the lease of this token; calls `done` once, unless the
  /// stream ends before. Errors: the worker's refusal, after which the stream continues as before.
  void move(const std::string& token, std::move_only_function<void(Result<void>)> done);
  /// Closes the connection. No handler is called any more.
  void close();

 private:
  explicit WorkerStream(Handlers handlers, RequestId request)
      : handlers_(std::move(handlers)), request_(std::move(request)) {}
  void authenticate(const std::string& token);
  void submit(const wire::RequestSubmit& generate);
  void resume(const wire::RequestSubmit& generate);
  void accepted(Result<control::Payload> reply);
  bool take_token_line(std::string_view line);
  void take_notification(const std::string& method, const control::Json& body);
  void complete(const wire::RequestCompleted& completed);
  void failed(const Error& error);
  /// Fails the stream and returns false for a message about another request.
  bool is_ours(const RequestId& request);

  Handlers handlers_;
  RequestId request_;
  std::shared_ptr<control::Peer> peer_;  ///< Null once closed.
};

}  // namespace leasehold::client
