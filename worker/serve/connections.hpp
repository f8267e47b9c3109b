/// Accepts the connections of tenants, closes those that the ConnectionLimiter chooses, and passes
/// on the calls of the others.
///
/// An unauthenticated connection may send and leave unread only a little (kUnauthenticatedLimits).
/// The tenants share a limit on their buffered input: unfinished lines, and lines that are paced.
///
/// Threads: that of the io_context. Lifetime: the io_context and the clock outlive the object.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ipc/control/transport/peer.hpp"
#include "worker/serve/connection_limiter.hpp"

namespace leasehold {

/// One tenant's connection. Ids are never used twice.
struct TenantConnection {
  std::uint64_t id = 0;
  std::optional<TenantId> tenant;  ///< Set once authenticated.
  LeaseId lease{};  ///< Lease of the newest token that was shown; set once authenticated.
  std::weak_ptr<control::Peer> peer;
};

class TenantConnections {
 public:
  /// Limit for all tenants together.
  static constexpr std::size_t kMaxWaitingInputBytes = 64 << 20;

  using Acceptor = boost::asio::local::stream_protocol::acceptor;

  struct Handlers {
    std::function<void(const TenantConnection&, const std::string& method, control::Payload,
                       control::Responder)>
        on_call;
    std::function<void(const TenantConnection&)> on_closed;
    ConnectionLimiter::UseOf use_of;
    /// Runs `work`, which parses a tenant's long line, on another thread. Empty: parsed on this
    /// thread.
    std::function<void(const TenantId&, std::move_only_function<void()> work)> parse_long = {};
  };

  TenantConnections(boost::asio::io_context& io, const Clock& clock, Handlers handlers)
      : handlers_(std::move(handlers)), clock_(&clock), accept_timer_(io), deadline_timer_(io) {}

  /// Creates a socket that every tenant can reach. Connections wait in its backlog until `serve`.
  /// Errors: those of control::listen_on.
  static Result<Acceptor> listen(boost::asio::io_context& io, const std::string& path);

  void serve(Acceptor acceptor);

  /// Assigns the connection to the tenant of this live lease, and allows it to send long lines.
  /// Errors: those of ConnectionLimiter::authenticated.
  Result<void> authenticate(const TenantConnection& connection, const LeaseClaim& claim);
  /// Calls ConnectionLimiter::used.
  void used(std::uint64_t connection, LeaseId lease) {
    limiter_.used(connection, lease, clock_->now());
  }

  void stop_accepting() { acceptor_.reset(); }
  /// Closes each connection once its queued output has been sent.
  void close_all();
  bool empty() const { return open_.empty(); }

 private:
  struct Open;
  void accept_next();
  void accept_later();
  void add(control::Socket socket);
  TenantConnection describe(const Open& open) const;
  void close(ConnectionLimiter::ConnectionId id);
  void await_deadline();
  void report_limits();
  std::optional<Error> refuse_input(const Open& open) const;

  Handlers handlers_;
  const Clock* clock_;
  ConnectionLimiter limiter_;
  control::QueueShares<TenantId> waiting_input_{kMaxWaitingInputBytes};
  boost::asio::steady_timer accept_timer_;
  boost::asio::steady_timer deadline_timer_;
  bool waits_for_deadline_ = false;
  std::optional<Acceptor> acceptor_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Open>> open_;
};

}  // namespace leasehold
