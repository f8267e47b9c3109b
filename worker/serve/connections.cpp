#include "worker/serve/connections.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "ipc/control/excess.hpp"
#include "worker/serve/unread_output.hpp"

namespace leasehold {
namespace {

constexpr mode_t kSocketMode = 0666;  // a valid token, not the file mode, lets a tenant in
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
/// How often the leases of open connections are checked.
constexpr auto kLeaseCheckInterval = std::chrono::seconds(1);
/// No method of a worker takes descriptors from a tenant.
constexpr control::Limits kTenantLimits{.max_values = control::kRequestLimits.max_values,
                                        .max_fds = 0,
                                        .max_queued_bytes = 2 * kMaxUnreadOutputBytesPerConnection};
/// Enough for one call with a token, and for the error that answers an invalid token.
constexpr control::Limits kUnauthenticatedLimits{.max_line_bytes = 4 << 10,
                                                 .line_hint = "call connection.authenticate first",
                                                 .max_values = control::kRequestLimits.max_values,
                                                 .max_fds = 0,
                                                 .max_queued_bytes = 64 << 10};

}  // namespace

struct TenantConnections::Open {
  std::uint64_t id = 0;
  std::shared_ptr<control::Peer> peer;
};

Result<TenantConnections::Acceptor> TenantConnections::listen(boost::asio::io_context& io,
                                                              const std::string& path) {
  return control::listen_on(io, path, kSocketMode);
}

void TenantConnections::serve(Acceptor acceptor) {
  acceptor_.emplace(std::move(acceptor));
  accept_next();
}

void TenantConnections::close_all() {
  for (const auto& [id, open] : open_) open->peer->close();
}

void TenantConnections::accept_next() {
  acceptor_->async_accept([this](const boost::system::error_code& error, control::Socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) return accept_later();
    add(std::move(socket));
    accept_next();
  });
}

/// The process is probably out of descriptors; accepting again at once would fail again.
void TenantConnections::accept_later() {
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && acceptor_) accept_next();  // stop_accepting may have been called
  });
}

void TenantConnections::add(control::Socket socket) {
  auto added = std::make_shared<Open>(Open{.id = ++last_id_, .peer = {}});
  const std::weak_ptr<Open> weak = added;  // a peer may outlive this object
  const auto on_call = [this, weak](const std::string& method, control::Payload params,
                                    control::Responder respond) {
    const auto open = weak.lock();
    if (!open) return;
    handlers_.on_call(describe(*open), method, std::move(params), std::move(respond));
  };
  const auto on_closed = [this, weak](const Error&) {
    const auto open = weak.lock();
    if (!open) return;
    handlers_.on_closed(describe(*open));
    limiter_.closed(open->id);
    open_.erase(open->id);
  };
  const auto throttle = [this, weak](std::size_t weight) {
    const auto open = weak.lock();
    return open ? limiter_.pace(open->id, weight, clock_->now()) : Duration::zero();
  };
  const auto refuse = [this, weak] {
    const auto open = weak.lock();
    return open ? refuse_input(*open) : std::nullopt;
  };
  const auto parse_long = [this, weak](std::move_only_function<void()> work) {
    const auto open = weak.lock();
    const TenantId* tenant = open ? limiter_.tenant_of(open->id) : nullptr;
    const bool is_elsewhere = tenant != nullptr && handlers_.parse_long;
    is_elsewhere ? handlers_.parse_long(*tenant, std::move(work)) : work();
  };
  added->peer = control::Peer::create(std::move(socket),
                                      {.on_call = on_call,
                                       .on_notification = {},
                                       .on_closed = on_closed,
                                       .throttle = throttle,
                                       .refuse_input = refuse,
                                       .parse_long = parse_long},
                                      kUnauthenticatedLimits);
  open_.emplace(added->id, added);
  const uid_t uid = added->peer->credentials().uid;
  if (const auto displaced = limiter_.connected(added->id, uid, clock_->now())) close(*displaced);
  added->peer->start();
  report_limits();
  await_deadline();
}

TenantConnection TenantConnections::describe(const Open& open) const {
  const TenantId* tenant = limiter_.tenant_of(open.id);
  return {.id = open.id,
          .tenant = tenant ? std::optional(*tenant) : std::nullopt,
          .lease = limiter_.lease_of(open.id),
          .peer = open.peer};
}

Result<void> TenantConnections::authenticate(const TenantConnection& connection,
                                             const LeaseClaim& claim) {
  const auto displaced =
      limiter_.authenticated(connection.id, claim, clock_->now(), handlers_.use_of);
  report_limits();
  if (!displaced) return std::unexpected(displaced.error());
  if (*displaced) close(**displaced);
  if (const auto peer = connection.peer.lock()) {
    peer->set_limits(kTenantLimits);
    peer->set_input_meter(waiting_input_.meter_of(claim.tenant));
  }
  return {};
}

std::optional<Error> TenantConnections::refuse_input(const Open& open) const {
  const TenantId* tenant = limiter_.tenant_of(open.id);
  if (tenant == nullptr) return std::nullopt;
  const ResourceShare share = waiting_input_.owner_share(*tenant);
  if (may_take_more(share)) return std::nullopt;
  return Error{Errc::QueueFull,
               fmt::format("{} bytes of lines of tenant {} wait, its share of {} with {} in use; "
                           "finish lines, and send less at once",
                           share.held, tenant->value, share.capacity, share.taken)};
}

void TenantConnections::close(ConnectionLimiter::ConnectionId id) {
  const auto found = open_.find(id);
  if (found != open_.end()) found->second->peer->close();
}

/// The timer runs only while a connection is open.
void TenantConnections::await_deadline() {
  if (open_.empty() || std::exchange(waits_for_deadline_, true)) return;
  const TimePoint now = clock_->now();
  const TimePoint check = now + kLeaseCheckInterval;
  const TimePoint deadline = std::min(check, limiter_.next_deadline().value_or(check));
  deadline_timer_.expires_after(std::max(deadline - now, Duration::zero()));
  deadline_timer_.async_wait([this](const boost::system::error_code& error) {
    waits_for_deadline_ = false;
    if (error || !acceptor_) return;
    for (const ConnectionLimiter::ConnectionId id : limiter_.take_overdue(clock_->now())) close(id);
    for (const ConnectionLimiter::ConnectionId id :
         limiter_.take_ended(clock_->now(), handlers_.use_of))
      close(id);
    report_limits();
    await_deadline();
  });
}

void TenantConnections::report_limits() {
  const auto report = limiter_.take_report(clock_->now());
  if (!report) return;
  spdlog::warn(
      "connections to this worker reached a limit timed_out={} displaced={} refused={} unused={} "
      "open={}",
      report->timed_out, report->displaced, report->refused, report->unused, open_.size());
}

}  // namespace leasehold
