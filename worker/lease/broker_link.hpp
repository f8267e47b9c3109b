/// The worker's connection to its broker.
///
/// Threads: `call` blocks and may be used by any thread but the I/O thread; `call_async`, `report`
/// likewise from any; the rest on the I/O thread, as are the handlers. Lifetime: the io_context has
/// stopped before the link goes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "worker/lease/report_queue.hpp"

namespace leasehold {

class BrokerLink {
 public:
  struct Handlers {
    std::function<void(const std::string& method, control::Payload, control::Responder)> on_call;
    /// The broker is gone. Leases go on to their deadlines and no further.
    std::function<void(const Error&)> on_disconnected;
  };

  /// Errors: those of control::connect_to.
  static Result<std::unique_ptr<BrokerLink>> connect(boost::asio::io_context& io,
                                                     const std::string& path, Handlers handlers);

  /// A new connection in place of the one that was lost. Errors: as `connect`.
  Result<void> reconnect();
  /// Gives the connection up without telling anybody.
  void disconnect();

  /// Errors: what the broker answered, TimedOut, ConnectionLost.
  Result<control::Payload> call(const std::string& method, control::Payload params,
                                Duration timeout);

  void call_async(const std::string& method, control::Payload params,
                  control::Peer::ReplyHandler on_reply, Duration timeout = Duration::zero());

  /// Sends what this worker saw, or keeps it while reports are held.
  void report(const events::Event& event, TimePoint at);

  /// While the broker is away reports are kept, as many as a ReportQueue holds.
  void buffer_reports() { buffering_ = true; }
  void flush_reports();

 private:
  BrokerLink(boost::asio::io_context& io, std::string path, Handlers handlers)
      : io_(&io), path_(std::move(path)), handlers_(std::move(handlers)) {}
  std::shared_ptr<control::Peer> make_peer(control::Socket socket);
  void send_report(std::string event);

  boost::asio::io_context* io_;
  std::string path_;
  Handlers handlers_;
  std::shared_ptr<control::Peer> peer_;
  int connections_ = 0;  // the end of an earlier one may be told late
  bool buffering_ = false;
  ReportQueue buffered_;
};

}  // namespace leasehold
