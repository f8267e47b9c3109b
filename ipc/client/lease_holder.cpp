#include "ipc/client/lease_holder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/random.hpp"
#include "ipc/client/parse_message.hpp"

namespace leasehold::client {
namespace {

/// The timeout is long, because a grant waits for the worker to map and prefault memory.
constexpr Duration kAcquireTimeout = std::chrono::seconds(30);
constexpr Duration kCallTimeout = std::chrono::seconds(10);
constexpr Duration kFirstReconnectDelay = std::chrono::milliseconds(20);
constexpr Duration kMaxReconnectDelay = std::chrono::milliseconds(500);
/// About eight seconds in all; a service manager restarts a broker faster.
constexpr int kMaxResends = 20;

Duration reconnect_delay(int attempt) {
  return std::min(kFirstReconnectDelay * (1 << std::clamp(attempt, 0, 10)), kMaxReconnectDelay);
}

RequestId fresh_request_id() {
  return RequestId{mint_request_id()};
}

}  // namespace

std::shared_ptr<LeaseHolder> LeaseHolder::create(boost::asio::io_context& io, Timers& timers,
                                                 std::string broker_path, Handlers handlers,
                                                 AtSessionEnd at_end) {
  return std::shared_ptr<LeaseHolder>(
      new LeaseHolder(io, timers, std::move(broker_path), std::move(handlers), at_end));
}

Result<void> LeaseHolder::connect() {
  if (broker_.is_open()) return {};
  control::Peer::Handlers handlers;
  handlers.on_notification = [weak = weak_from_this()](const std::string& method,
                                                       const control::Payload& params) {
    if (const auto self = weak.lock()) self->take_notification(method, params.body);
  };
  handlers.on_closed = [weak = weak_from_this(), mine = broker_.next_number()](const Error& why) {
    const auto self = weak.lock();
    if (self && self->broker_.is_open(mine)) self->broker_disconnected(why);
  };
  return broker_.open(std::move(handlers));
}

void LeaseHolder::disconnect() {
  renew_timer_.reset();
  reconnect_timer_.reset();
  broker_.close();
}

void LeaseHolder::stop_renewing() {
  lease_is_live_ = false;
  renew_timer_.reset();
  reconnect_timer_.reset();
}

// ---------------------------------------------------------------- acquire

void LeaseHolder::acquire(const wire::LeaseAcquire& wanted, AcquireHandler done) {
  stop_renewing();
  on_replaced_ = nullptr;
  if (auto connected = connect(); !connected) {
    return done(std::unexpected(std::move(connected).error()));
  }
  pending_acquire_.emplace(PendingAcquire{.message = wanted, .done = std::move(done)});
  send_acquire();
}

void LeaseHolder::send_acquire() {
  broker_.call(pending_acquire_->message, kAcquireTimeout,
               [weak = weak_from_this()](Result<control::Payload> reply) {
                 const auto self = weak.lock();
                 if (self && self->pending_acquire_) self->granted(std::move(reply));
               });
}

/// True if the broker granted a lease to the first call, whose reply was lost, and that lease ended
/// before the resend.
bool LeaseHolder::lost_lease_of_resend(Errc code) const {
  return pending_acquire_->resends > 0 &&
         (code == Errc::LeaseRevoked || code == Errc::LeaseFenced || code == Errc::StaleGeneration);
}

void LeaseHolder::granted(Result<control::Payload> reply) {
  if (!reply) {
    const Errc code = reply.error().code;
    const bool asked_to_wait = reply.error().retry_after_ms > 0;  // the caller decides then
    // A broker that has just restarted may refuse a lease that it grants a moment later.
    const bool may_resend = code == Errc::ConnectionLost || code == Errc::BrokerLost ||
                            lost_lease_of_resend(code) ||
                            (pending_acquire_->resends > 0 && is_retryable(code) &&
                             code != Errc::TimedOut && !asked_to_wait);
    if (lost_lease_of_resend(code)) pending_acquire_->message.request_id = fresh_request_id();
    if (may_resend && pending_acquire_->resends < kMaxResends) return resend();
    // A late grant would leave a lease without a holder; closing the connection makes the broker
    // revoke it.
    if (code == Errc::TimedOut) disconnect();
    return std::exchange(pending_acquire_, {})->done(std::unexpected(std::move(reply).error()));
  }
  const auto acquired = parse_message<wire::LeaseAcquired>(reply->body);
  if (!acquired)
    return std::exchange(pending_acquire_, {})->done(std::unexpected(acquired.error()));
  take(*acquired);
}

void LeaseHolder::take(const wire::LeaseAcquired& acquired) {
  // The broker may refuse, because the old lease may already be over.
  release_previous();
  if (lease_) release_lease(lease_->lease, [](Result<control::Payload>) {});
  lease_ = acquired;
  lease_is_live_ = true;
  reconnect_attempts_ = 0;
  renew_later();
  if (pending_acquire_->resends == 0) return std::exchange(pending_acquire_, {})->done(acquired);
  // The granted lease may belong to the first call, whose connection is closed: hold it on this
  // connection.
  hold([this, acquired](const Result<void>& held) {
    if (!pending_acquire_) return;
    if (held) return std::exchange(pending_acquire_, {})->done(acquired);
    lease_.reset();
    stop_renewing();
    granted(std::unexpected(held.error()));
  });
}

void LeaseHolder::resend() {
  reconnect_timer_ = timers_.after(reconnect_delay(pending_acquire_->resends++), [this] {
    if (const auto connected = connect(); !connected) {
      return granted(fail(Errc::ConnectionLost, connected.error().detail));
    }
    send_acquire();
  });
}

// ---------------------------------------------------------------- replace

void LeaseHolder::replace(wire::LeaseReplace wanted, AcquireHandler done) {
  on_replaced_ = std::move(done);
  wanted.lease = lease_->lease;
  wanted.request_id = fresh_request_id();
  broker_.call(wanted, kAcquireTimeout,
               [weak = weak_from_this(), mine = ++replacement_](Result<control::Payload> reply) {
                 const auto self = weak.lock();
                 if (!self) return;
                 const auto acquired = reply ? parse_message<wire::LeaseAcquired>(reply->body)
                                             : std::unexpected(reply.error());
                 const bool is_wanted = self->on_replaced_ && self->replacement_ == mine;
                 if (!is_wanted && acquired && self->broker_.is_open())
                   return self->release_lease(acquired->lease, [](Result<control::Payload>) {});
                 if (!is_wanted) return;
                 if (acquired) return self->replaced(*acquired);
                 std::exchange(self->on_replaced_, nullptr)(std::unexpected(acquired.error()));
               });
}

void LeaseHolder::replaced(const wire::LeaseAcquired& acquired) {
  previous_ = lease_->lease;
  lease_ = acquired;
  lease_is_live_ = true;
  renew_later();
  std::exchange(on_replaced_, nullptr)(acquired);
}

/// The broker may refuse, because the lease may already be over.
void LeaseHolder::release_previous() {
  const auto previous = std::exchange(previous_, std::nullopt);
  if (previous && broker_.is_open()) release_lease(*previous, [](Result<control::Payload>) {});
}

// ---------------------------------------------------------------- revoked

/// Ignores a notice that is malformed or names an earlier lease: the calls for the lease report its
/// end, too.
void LeaseHolder::take_notification(const std::string& method, const control::Json& body) {
  if (!lease_is_live_) return;
  if (method == wire::LeaseDraining::kMethod && handlers_.on_draining) {
    const auto draining = parse_message<wire::LeaseDraining>(body);
    // A copy: the handler may replace the handlers.
    const auto on_draining = handlers_.on_draining;
    if (draining && draining->lease == lease_->lease) on_draining(*draining);
  }
  if (method != wire::LeaseRevoked::kMethod) return;
  const auto revoked = parse_message<wire::LeaseRevoked>(body);
  if (!revoked || revoked->lease != lease_->lease) return;
  stop_renewing();
  if (const auto on_revoked = handlers_.on_revoked) on_revoked(*revoked);
}

// ---------------------------------------------------------------- reconnect

void LeaseHolder::broker_disconnected(const Error& why) {
  Timer resend_timer = std::exchange(reconnect_timer_, nullptr);
  disconnect();
  reconnect_timer_ = std::move(resend_timer);
  if (on_released_) return std::exchange(on_released_, nullptr)();
  if (!lease_ || !lease_is_live_) return;
  reconnect_attempts_ = 0;
  if (const auto on_lost = handlers_.on_lost) {
    on_lost(
        {Errc::BrokerLost,
         fmt::format("the connection to the broker at {} closed: {}", broker_.path(), why.detail),
         FailureScope::Tenant});  // the worker may still be connected to the broker
  }
  reconnect();
}

void LeaseHolder::reconnect() {
  if (TimePoint{lease_->deadline_boottime_ns} <= timers_.now()) return stop_renewing();
  reconnect_timer_ = timers_.after(reconnect_delay(reconnect_attempts_++), [this] {
    if (!connect()) return reconnect();
    hold([this](const Result<void>& held) {
      if (!lease_is_live_) return;
      if (held) return renew();
      const Errc code = held.error().code;
      if (code == Errc::ConnectionLost) return;  // broker_disconnected() handles it
      if (!is_retryable(code)) return stop_renewing();
      disconnect();
      reconnect();
    });
  });
}

void LeaseHolder::hold(std::move_only_function<void(Result<void>)> done) {
  const wire::LeaseHold message{
      .lease = lease_->lease, .token = lease_->token, .request_id = fresh_request_id()};
  broker_.call(
      message, kCallTimeout,
      [weak = weak_from_this(), done = std::move(done)](Result<control::Payload> reply) mutable {
        const auto self = weak.lock();
        if (!self) return;
        if (!reply) return done(std::unexpected(reply.error()));
        done({});
      });
}

// ---------------------------------------------------------------- renew and release

void LeaseHolder::renew_later() {
  const auto ttl = std::chrono::milliseconds(lease_->ttl_ms);
  if (ttl <= Duration::zero()) return;
  renew_timer_ = timers_.after(ttl / 3, [this] { renew(); });
}

void LeaseHolder::renew() {
  const wire::LeaseRenew message{.lease = lease_->lease, .request_id = fresh_request_id()};
  broker_.call(
      message, kCallTimeout,
      [weak = weak_from_this(), lease = lease_->lease](Result<control::Payload> reply) {
        const auto self = weak.lock();
        if (!self || !self->broker_.is_open() || !self->lease_ || self->lease_->lease != lease)
          return;
        const auto renewed =
            reply ? parse_message<wire::LeaseRenewed>(reply->body) : std::unexpected(reply.error());
        if (renewed) self->lease_->deadline_boottime_ns = renewed->deadline_boottime_ns;
        if (!renewed && !is_retryable(renewed.error().code)) self->stop_renewing();
      });
  renew_later();
}

void LeaseHolder::release_lease(LeaseId lease, control::Peer::ReplyHandler on_reply) {
  const wire::LeaseRelease message{.lease = lease, .request_id = fresh_request_id()};
  broker_.call(message, kCallTimeout, std::move(on_reply));
}

/// Releases a lease that is being acquired or replaced, because the reply would reach the next
/// session.
void LeaseHolder::session_ended(Duration timeout, std::move_only_function<void()> done) {
  handlers_ = {};
  const bool may_keep = at_session_end_ == AtSessionEnd::KeepLive && is_live() && !is_replacing();
  if (!may_keep) return release(timeout, std::move(done));
  release_previous();
  done();
}

void LeaseHolder::release(Duration timeout, std::move_only_function<void()> done) {
  stop_renewing();
  pending_acquire_.reset();
  on_replaced_ = nullptr;
  release_previous();
  if (!broker_.is_open() || !lease_) {
    disconnect();
    return done();
  }
  on_released_ = std::move(done);
  auto finish = [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->on_released_) return;
    self->release_timer_.reset();
    self->disconnect();
    std::exchange(self->on_released_, nullptr)();
  };
  release_timer_ = timers_.after(timeout, finish);
  release_lease(lease_->lease, [finish](Result<control::Payload>) { finish(); });
}

}  // namespace leasehold::client
