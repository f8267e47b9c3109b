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

#include "broker/books/ids.hpp"
#include "broker/server/connections/connection_admission.hpp"
#include "broker/server/connections/spare_descriptors.hpp"
#include "common/clock.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

class Connections {
 public:
  /// Spare descriptors for connections of operators when the process has reached its descriptor
  /// limit.
  static constexpr std::size_t kSpareDescriptors = 8;

  /// Limit on the unsent output of one connection, which is closed beyond it. Twice the longest
  /// message.
  static constexpr std::size_t kMaxUnsentBytesPerConnection = 2 << 20;
  /// Limit on the unsent output of all tenants, shared by uid. Operators and workers share a second
  /// budget of the same size.
  static constexpr std::size_t kMaxUnsentBytes = 32 << 20;
  /// The same limit for input that waits: unfinished lines, and lines that the rate limit delays.
  static constexpr std::size_t kMaxWaitingInputBytes = 32 << 20;

  struct Handlers {
    std::function<void(ConnectionId, const std::string& method, control::Payload,
                       control::Responder)>
        on_call;
    std::function<void(ConnectionId, const std::string& method, control::Payload)> on_notification;
    std::function<void(ConnectionId)> on_closed;
    std::function<void(ConnectionId)> on_holder_exit;
    /// Called when `has_pending_checks` may have become true.
    std::function<void()> on_change = [] {};
  };

  /// Lifetime: the clock outlives this object.
  Connections(boost::asio::io_context& io, boost::asio::local::stream_protocol::acceptor acceptor,
              Handlers handlers, const Clock& clock, const std::set<uid_t>& worker_uids);

  void start() { accept_next(); }
  void stop_accepting();

  /// See RateLimits::admit_events.
  std::size_t admit_events(ConnectionId connection, std::size_t reported);

  /// See ConnectionAdmission::take_report.
  std::optional<ConnectionAdmission::Report> take_report() {
    return admission_.take_report(clock_->now());
  }

  /// True while connections may have to be closed or reported later. Then call `check` from time to
  /// time.
  bool has_pending_checks() const {
    return admission_.has_pending_checks() || rates_.has_dropped();
  }

  /// Closes connections that have made no call in time, and logs what the limits did.
  void check();

  /// Closes connections that have made no call in time.
  void close_silent();

  /// Closes the connections with the most unsent output, until every user's output fits its share.
  /// Call it after anything that may have sent much.
  void bound_output();

  std::shared_ptr<control::Peer> find(ConnectionId connection) const;

  /// Watches the peer's process as a lease holder; its exit calls `on_holder_exit`. Idempotent.
  /// Errors: ConnectionLost when the process is gone, SystemError.
  Result<void> watch_holder(ConnectionId connection);

  /// Start time of the peer's process in clock ticks, cached; 0 when the process is gone.
  std::uint64_t start_ticks(ConnectionId connection);

 private:
  struct Connection {
    std::shared_ptr<control::Peer> peer;
    std::shared_ptr<control::QueueMeter> unsent;  ///< Empty for a bound worker, see WorkerLinks.
    std::optional<boost::asio::posix::stream_descriptor> holder_watch;
    std::optional<std::uint64_t> start_ticks;
  };

  struct Shares {
    control::QueueShares<uid_t> unsent{kMaxUnsentBytes};
    control::QueueShares<uid_t> input{kMaxWaitingInputBytes};
  };

  void accept_next();
  void accept_later();
  bool accept_on_spare();
  void add(control::Socket socket, bool operators_only = false);
  Shares& shares_of(uid_t uid) { return admission_.may_use_reserve(uid) ? reserved_ : tenants_; }
  std::optional<Error> refuse_input(uid_t uid);
  control::Peer::Handlers peer_handlers(ConnectionId id);
  std::map<ConnectionId, Connection>::iterator largest_unsent(uid_t uid);
  void close(ConnectionId id);

  boost::asio::io_context& io_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer accept_timer_;
  Handlers handlers_;
  const Clock* clock_;
  RateLimits rates_;
  ConnectionAdmission admission_;
  SpareDescriptors spares_{kSpareDescriptors};
  std::uint64_t next_ = 1;
  Shares tenants_;
  Shares reserved_;
  std::map<ConnectionId, Connection> connections_;
};

}  // namespace leasehold
