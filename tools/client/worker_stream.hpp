/// The worker's side of a tenant: one `generate` on one connection, until it completes or fails.
///
/// Lifetime: shared; `io` outlives it. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::tenant {

class WorkerStream : public std::enable_shared_from_this<WorkerStream> {
 public:
  /// Called in the order things arrive; `on_completed` or `on_failed` is the last, called once.
  /// None is called after `close()`, and none from within `open()`.
  struct Handlers {
    std::function<void(const wire::Generating&)> on_generating;
    std::function<void(const wire::TokenEmitted&)> on_token;
    std::function<void(const wire::RequestCompleted&)> on_completed;
    /// The worker's refusal, MalformedMessage, TimedOut, or ConnectionLost.
    std::function<void(const Error&)> on_failed;
  };

  /// Connects and submits. Errors: those of connect_to.
  static Result<std::shared_ptr<WorkerStream>> open(boost::asio::io_context& io,
                                                    const std::string& address,
                                                    const wire::Generate& generate,
                                                    Handlers handlers);

  /// Asks the worker to end the request; `on_completed` follows.
  void cancel();
  void close();

 private:
  explicit WorkerStream(Handlers handlers, RequestId request)
      : handlers_(std::move(handlers)), request_(std::move(request)) {}
  void submit(const wire::Generate& generate);
  void take_notification(const std::string& method, const control::Json& body);
  void complete(const wire::RequestCompleted& completed);
  void failed(const Error& error);
  /// False for a message about some other request, which is a fault of the worker.
  bool is_ours(const RequestId& request);

  Handlers handlers_;
  RequestId request_;
  std::shared_ptr<control::Peer> peer_;  ///< Nothing once closed.
};

}  // namespace leasehold::tenant
