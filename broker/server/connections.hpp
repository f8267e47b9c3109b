/// Accepted connections with their peers, and pidfd watches on the processes that hold leases.
///
/// Threads: the io_context's thread.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "broker/books/ids.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

class Connections {
 public:
  /// A new connection beyond these limits is closed, because memory needs descriptors too. The last
  /// kReserved connections are reserved for operators and workers, so that tenants cannot lock them
  /// out.
  static constexpr std::size_t kMax = 1024;
  static constexpr std::size_t kReserved = 64;
  static constexpr std::size_t kMaxOfOneUser = 256;  ///< Does not apply to operators.

  struct Handlers {
    std::function<void(ConnectionId, const std::string& method, control::Payload,
                       control::Responder)>
        on_call;
    std::function<void(ConnectionId, const std::string& method, control::Payload)> on_notification;
    std::function<void(ConnectionId)> on_closed;
    std::function<void(ConnectionId)> on_holder_exit;
    std::function<bool(uid_t)> admit_connection;
    std::function<Duration(uid_t, std::size_t weight)> throttle;  ///< As in Peer::Handlers.
  };

  Connections(boost::asio::io_context& io, boost::asio::local::stream_protocol::acceptor acceptor,
              Handlers handlers, std::set<uid_t> worker_uids);

  void start() { accept_next(); }
  void stop_accepting();

  /// Connections refused since the last call.
  std::uint64_t take_refused() { return std::exchange(refused_, 0); }

  std::shared_ptr<control::Peer> find(ConnectionId connection) const;

  /// Watches the peer's process as a lease holder; its exit calls `on_holder_exit`. Idempotent.
  /// Errors: ConnectionLost when the process is gone, SystemError.
  Result<void> watch_holder(ConnectionId connection);

  /// Start time of the peer's process in clock ticks, cached; 0 when the process is gone.
  std::uint64_t start_ticks(ConnectionId connection);

 private:
  struct Connection {
    std::shared_ptr<control::Peer> peer;
    std::optional<boost::asio::posix::stream_descriptor> holder_watch;
    std::optional<std::uint64_t> start_ticks;
  };

  void accept_next();
  void accept_later();
  void add(control::Socket socket);
  bool has_room_for(uid_t uid) const;

  boost::asio::io_context& io_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer accept_timer_;
  Handlers handlers_;
  std::set<uid_t> worker_uids_;
  std::uint64_t next_ = 1;
  std::uint64_t refused_ = 0;
  std::map<ConnectionId, Connection> connections_;
};

}  // namespace leasehold
