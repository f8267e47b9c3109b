/// Serves tenants: answers `connection.authenticate`, `request.submit`, `request.resume`,
/// `request.move` and `request.cancel`, and sends the generated tokens.
///
/// Connects five parts: TenantConnections accepts connections, ClientRequests knows their requests,
/// RequestPipeline brings requests to the engine, Deliveries sends events to clients, and
/// ResumableStreams keeps the output of resumable requests. When a connection closes, its
/// non-resumable requests are cancelled within one unit. The first token on a connection determines
/// the tenant, and the token of a request determines its lease; the server trusts nothing else that
/// a client writes. A token is valid as long as its lease is live: after that the server answers it
/// with LeaseRevoked or LeaseFenced, reserves nothing for it and does not parse the request, and
/// closes the connection unless it has other requests.
///
/// Lifetime: see ServeDependencies.
/// Threads: that of the io_context, except `deliver`, `complete_early`, `drain`,
/// `lease_ended` and `set_broker_disconnected`, which any thread may call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "worker/serve/connections.hpp"
#include "worker/serve/deliveries.hpp"
#include "worker/serve/request_operations.hpp"
#include "worker/serve/request_pipeline.hpp"

namespace leasehold {

class TenantServer {
 public:
  explicit TenantServer(const ServeDependencies& dependencies);

  using Acceptor = TenantConnections::Acceptor;
  /// Creates a socket that every tenant can reach; no call is answered before `serve`.
  /// Errors: those of control::listen_on.
  static Result<Acceptor> listen(boost::asio::io_context& io, const std::string& path) {
    return TenantConnections::listen(io, path);
  }

  void serve(Acceptor acceptor) { connections_.serve(std::move(acceptor)); }

  /// Refuses new requests and requests that are not parsed yet with Draining; requests in the
  /// engine continue. Calls `on_drained` on the thread of the io_context, once no further request
  /// will reach the engine.
  void drain(std::function<void()> on_drained);

  /// Accepts no more connections, refuses requests that are not parsed yet with Draining, and
  /// closes each connection once its queued output has been sent.
  void close();
  bool is_closed() const { return connections_.empty(); }

  /// While the broker is disconnected every new request is refused with BrokerLost.
  void set_broker_disconnected(bool disconnected);
  /// Stops sending resumable streams to clients that read them under this fenced lease, unless the
  /// lease was only released. Call it before the slot gets another lease. The engine ends the
  /// requests of the lease.
  void lease_ended(LeaseId lease);

  /// Lists and stops requests of all tenants; used only on the thread of the io_context.
  RequestOperations& operations() { return operations_; }

  /// Delivers the events of a step.
  void deliver(std::vector<SchedulerEvent> events) { deliveries_.deliver(std::move(events)); }
  /// Delivers a completion that must not wait for the end of the step.
  void complete_early(Completed completed) { deliveries_.complete_early(std::move(completed)); }

 private:
  void on_call(const TenantConnection& connection, const std::string& method,
               control::Payload params, control::Responder respond);
  void authenticate(const TenantConnection& connection, const control::Json& body,
                    control::Responder respond);

  boost::asio::io_context* io_;
  const TableReader* table_;
  const Clock* clock_;
  TokenKey token_key_;
  UnreadOutput unread_;
  ClientRequests requests_;
  ResumableStreams resumable_;
  Deliveries deliveries_;
  RequestPipeline pipeline_;
  RequestOperations operations_;
  TenantConnections connections_;
};

}  // namespace leasehold
