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
#include "broker/server/spare_descriptors.hpp"
#include "common/clock.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

class Connections {
 public:
  /// A new connection beyond these limits is closed, because memory needs descriptors too. The last
  /// kReserved connections are reserved for operators and workers, so that tenants cannot lock them
  /// out. Among tenants connection_to_close makes room.
  static constexpr std::size_t kMax = 1024;
  static constexpr std::size_t kReserved = 64;
  static constexpr std::size_t kMaxOfOneUser = 256;  ///< Does not apply to operators.
  /// Kept open for operators' connections when the process has reached its limit.
  static constexpr std::size_t kSpareDescriptors = 8;
  static constexpr Duration kFirstCallTimeout = std::chrono::seconds(10);

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

  /// Connections refused since the last call, or closed to make room.
  std::uint64_t take_refused() { return std::exchange(refused_, 0); }

  /// Closes connections that sent no call within kFirstCallTimeout.
  void close_silent(TimePoint now);

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
    std::optional<TimePoint> silent_since;  ///< Set by close_silent until the first call.
    bool called = false;
  };

  void accept_next();
  void accept_later();
  bool accept_on_spare();
  void add(control::Socket socket, bool operators_only = false);
  bool has_room_for(uid_t uid) const;
  bool may_use_reserve(uid_t uid) const;
  bool make_room_for(uid_t uid);
  void close(ConnectionId id);

  boost::asio::io_context& io_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer accept_timer_;
  Handlers handlers_;
  std::set<uid_t> worker_uids_;
  SpareDescriptors spares_{kSpareDescriptors};
  std::uint64_t next_ = 1;
  std::uint64_t refused_ = 0;
  std::map<ConnectionId, Connection> connections_;
};

}  // namespace leasehold
