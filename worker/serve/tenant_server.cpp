#include "worker/serve/tenant_server.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "worker/serve/live_lease.hpp"

namespace leasehold {

TenantServer::TenantServer(const ServeDependencies& dependencies)
    : io_(dependencies.io),
      table_(dependencies.table),
      clock_(dependencies.clock),
      token_key_(dependencies.token_key),
      requests_(dependencies.eviction_listener),
      resumable_(
          *dependencies.io, *dependencies.clock,
          [this](LeaseId lease) { return word_at(*table_, lease, clock_->now()); },
          [this](const RequestId& unread) { pipeline_.abandon(unread); },
          [this](const RequestId& read) { requests_.detach(read); }),
      deliveries_(dependencies, unread_, resumable_, requests_),
      pipeline_(dependencies, requests_, resumable_,
                [this](std::uint64_t connection, LeaseId lease) {
                  connections_.used(connection, lease);
                }),
      operations_(dependencies, requests_, pipeline_),
      connections_(*dependencies.io, *dependencies.clock,
                   {.on_call =
                        [this](const TenantConnection& connection, const std::string& method,
                               control::Payload params, control::Responder respond) {
                          on_call(connection, method, std::move(params), std::move(respond));
                        },
                    .on_closed =
                        [this](const TenantConnection& connection) {
                          pipeline_.connection_closed(connection);
                        },
                    .use_of =
                        [this](std::uint64_t connection, LeaseId lease) {
                          return ConnectionLimiter::Use{
                              .has_requests = requests_.has_requests(connection),
                              .lease_is_live = is_live(*table_, lease, clock_->now())};
                        },
                    .parse_long = dependencies.parse_long}) {}

void TenantServer::set_broker_disconnected(bool disconnected) {
  boost::asio::post(*io_,
                    [this, disconnected] { pipeline_.set_broker_disconnected(disconnected); });
}

void TenantServer::lease_ended(LeaseId lease) {
  boost::asio::post(
      *io_, [this, lease, word = table_->word_of(lease)] { resumable_.lease_ended(lease, word); });
}

void TenantServer::drain(std::function<void()> on_drained) {
  boost::asio::post(*io_, [this, on_drained = std::move(on_drained)] {
    pipeline_.drain();
    on_drained();
  });
}

void TenantServer::close() {
  connections_.stop_accepting();
  pipeline_.close();
  connections_.close_all();
}

void TenantServer::on_call(const TenantConnection& connection, const std::string& method,
                           control::Payload params, control::Responder respond) {
  const auto peer = connection.peer.lock();
  if (!peer) return;
  if (connection.tenant) {
    auto excess = unread_.excess(*connection.tenant, peer->queued_bytes());
    // An error reply needs room too, and a client that does not read would not receive it.
    if (excess && peer->queued_bytes() > 0) return peer->close_now();
    if (excess) return respond(std::unexpected(*std::move(excess)));
  }
  if (method == wire::ConnectionAuthenticate::kMethod)
    return authenticate(connection, params.body, std::move(respond));
  const bool is_submit = method == wire::RequestSubmit::kMethod;
  const bool is_resume = method == wire::RequestResume::kMethod;
  const bool is_move = method == wire::RequestMove::kMethod;
  if (!is_submit && !is_resume && !is_move && method != wire::RequestCancel::kMethod) {
    return respond(
        fail(Errc::UnknownMethod,
             fmt::format("this socket is a worker's, which answers {}, {}, {}, {} "
                         "and {}, not '{}'; the broker's socket is another",
                         wire::ConnectionAuthenticate::kMethod, wire::RequestSubmit::kMethod,
                         wire::RequestResume::kMethod, wire::RequestMove::kMethod,
                         wire::RequestCancel::kMethod, method)));
  }
  if (!connection.tenant) {
    return respond(
        fail(Errc::BadToken, fmt::format("this connection has shown no lease token; call {} first",
                                         wire::ConnectionAuthenticate::kMethod)));
  }
  if (is_submit) return pipeline_.submit(connection, params.body, std::move(respond));
  if (is_resume) return pipeline_.resume(connection, params.body, std::move(respond));
  if (is_move) return pipeline_.move(connection, params.body, std::move(respond));
  const Result<void> cancelled = pipeline_.cancel(connection, params.body);
  if (!cancelled) return respond(std::unexpected(cancelled.error()));
  respond(control::Payload{.body = wire::Empty{}.to_json()});
}

/// An unauthenticated connection is closed when its token is refused, so each guess costs a
/// connection. An authenticated one stays open; its guesses are paced like other lines of its
/// tenant.
void TenantServer::authenticate(const TenantConnection& connection, const control::Json& body,
                                control::Responder respond) {
  const auto authenticated = [&]() -> Result<void> {
    const auto message = TRY(wire::ConnectionAuthenticate::from_json(body));
    const LeaseClaim claim = TRY(verify_token(token_key_, message.token));
    TRY(check_live(*table_, claim.lease, clock_->now()));
    TRY(connections_.authenticate(connection, claim));
    if (const auto peer = connection.peer.lock()) {
      peer->set_queue_meter(unread_.meter_of(claim.tenant));
    }
    return {};
  }();
  if (authenticated) return respond(control::Payload{.body = wire::Empty{}.to_json()});
  respond(std::unexpected(authenticated.error()));
  if (const auto peer = connection.peer.lock(); peer && !connection.tenant) peer->close();
}

}  // namespace leasehold
