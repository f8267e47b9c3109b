/// The connections of tenants: accepts them, keeps those that the ConnectionLimiter keeps, and
/// passes their calls on.
///
/// A connection that has not authenticated may send and leave unread little
/// (kUnauthenticatedLimits). The tenants share what may wait of their input: unfinished lines, and
/// lines that are paced.
///
/// Threads: that of the io_context. Lifetime: the io_context and the clock outlive it.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ipc/control/peer.hpp"
#include "worker/serve/connection_limiter.hpp"

namespace leasehold {

/// One tenant's connection. Ids are never used twice.
struct TenantConnection {
  std::uint64_t id = 0;
  std::optional<TenantId> tenant;  ///< Once authenticated.
  LeaseId lease{};                 ///< Of the newest token that was shown, likewise.
  std::weak_ptr<control::Peer> peer;
};

class TenantConnections {
 public:
  static constexpr std::size_t kMaxWaitingInputBytes = 64 << 20;  ///< Of all tenants.

  using Acceptor = boost::asio::local::stream_protocol::acceptor;

  struct Handlers {
    std::function<void(const TenantConnection&, const std::string& method, control::Payload,
                       control::Responder)>
        on_call;
    std::function<void(const TenantConnection&)> on_closed;
    ConnectionLimiter::UseOf use_of;
    /// Does the work of a tenant, parsing a long line, on another thread; empty: on this one.
    std::function<void(const TenantId&, std::move_only_function<void()> work)> parse_long = {};
  };

  TenantConnections(boost::asio::io_context& io, const Clock& clock, Handlers handlers)
      : handlers_(std::move(handlers)), clock_(&clock), accept_timer_(io), deadline_timer_(io) {}

  /// Creates a socket that every tenant can reach. Connections wait in its backlog until `serve`.
  /// Errors: those of control::listen_on.
  static Result<Acceptor> listen(boost::asio::io_context& io, const std::string& path);

  void serve(Acceptor acceptor);

  /// The connection belongs to the tenant of this live lease from now on, and may send long lines.
  /// Errors: those of ConnectionLimiter::authenticated.
  Result<void> authenticate(const TenantConnection& connection, const LeaseClaim& claim);
  /// As ConnectionLimiter::used.
  void used(std::uint64_t connection, LeaseId lease) {
    limiter_.used(connection, lease, clock_->now());
  }

  void stop_accepting() { acceptor_.reset(); }
  /// Closes each connection once what is queued for it has been sent.
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
