/// The worker's connection to its broker.
///
/// Threads: `call` blocks and may be used by any thread but the I/O thread; `call_async`, `report`
/// likewise from any. Handlers run on the I/O thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

class BrokerLink {
 public:
  struct Handlers {
    std::function<void(const std::string& method, control::Payload, control::Responder)> on_call;
    /// The broker is gone. Leases go on to their deadlines and no further.
    std::function<void(const Error&)> on_lost;
  };

  /// Errors: those of control::connect_to.
  static Result<std::unique_ptr<BrokerLink>> connect(boost::asio::io_context& io,
                                                     const std::string& path, Handlers handlers);

  /// Errors: what the broker answered, TimedOut, ConnectionLost.
  Result<control::Payload> call(const std::string& method, control::Payload params,
                                Duration timeout);

  void call_async(const std::string& method, control::Payload params,
                  control::Peer::ReplyHandler on_reply);

  /// Sends what this worker saw; lost when the broker is gone.
  void report(const events::Event& event, TimePoint at);

 private:
  BrokerLink(boost::asio::io_context& io, std::shared_ptr<control::Peer> peer)
      : io_(&io), peer_(std::move(peer)) {}

  boost::asio::io_context* io_;
  std::shared_ptr<control::Peer> peer_;
};

}  // namespace leasehold
