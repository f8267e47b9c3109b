#include "tools/tenant/lease_holder.hpp"

#include <fmt/format.h>

#include "common/random.hpp"
#include "tools/cli/answer.hpp"

namespace leasehold::tenant {
namespace {

/// A grant waits for the worker to map and prefault memory, so it may take its time.
constexpr Duration kAcquireTimeout = std::chrono::seconds(30);
constexpr Duration kCallTimeout = std::chrono::seconds(10);

RequestId fresh_request_id() {
  return RequestId{mint_request_id()};
}

control::Peer::ReplyHandler ignore_reply() {
  return [](Result<control::Payload>) {};
}

}  // namespace

std::shared_ptr<LeaseHolder> LeaseHolder::create(boost::asio::io_context& io, Timers& timers,
                                                 std::string broker_path, LostHandler on_lost) {
  return std::shared_ptr<LeaseHolder>(
      new LeaseHolder(io, timers, std::move(broker_path), std::move(on_lost)));
}

Result<void> LeaseHolder::connect() {
  if (broker_) return {};
  auto socket = TRY(control::connect_to(io_, path_));
  control::Peer::Handlers handlers;
  handlers.on_closed = [weak = weak_from_this(), mine = ++connection_](const Error& why) {
    const auto self = weak.lock();
    if (!self || !self->broker_ || self->connection_ != mine) return;
    self->disconnect();
    if (self->on_released_) return std::exchange(self->on_released_, nullptr)();
    if (self->lease_) {
      self->on_lost_(
          {Errc::BrokerLost, fmt::format("the broker at {} is gone: {}", self->path_, why.detail)});
    }
  };
  broker_ = control::Peer::create(std::move(socket), std::move(handlers));
  broker_->start();
  return {};
}

void LeaseHolder::disconnect() {
  renew_timer_.reset();
  if (const auto broker = std::exchange(broker_, nullptr)) broker->close();
}

void LeaseHolder::acquire(const wire::LeaseAcquire& wanted, AcquireHandler done) {
  renew_timer_.reset();
  if (auto connected = connect(); !connected) {
    return done(std::unexpected(std::move(connected).error()));
  }
  broker_->call(
      std::string(wire::LeaseAcquire::kMethod), {.body = wanted.to_json()},
      [weak = weak_from_this(), done = std::move(done)](Result<control::Payload> reply) mutable {
        if (const auto self = weak.lock()) self->granted(std::move(reply), std::move(done));
      },
      kAcquireTimeout);
}

void LeaseHolder::granted(Result<control::Payload> reply, AcquireHandler done) {
  if (!reply) {
    // An answer that comes too late would leave a lease nobody knows of; the broker takes it back
    // when its holder's connection goes.
    if (reply.error().code == Errc::TimedOut) disconnect();
    return done(std::unexpected(std::move(reply).error()));
  }
  auto acquired = cli::read_answer<wire::LeaseAcquired>(reply->body);
  if (!acquired) return done(std::unexpected(std::move(acquired).error()));
  // Its successor is there; the broker may know long since that it is over, and says so.
  if (lease_) release_lease(lease_->lease, ignore_reply());
  lease_ = *acquired;
  renew_later();
  done(std::move(acquired));
}

void LeaseHolder::renew_later() {
  const auto ttl = std::chrono::milliseconds(lease_->ttl_ms);
  if (ttl <= Duration::zero()) return;
  renew_timer_ = timers_.after(ttl / 3, [this] { renew(); });
}

void LeaseHolder::renew() {
  const wire::LeaseRenew message{.lease = lease_->lease, .request_id = fresh_request_id()};
  broker_->call(
      std::string(wire::LeaseRenew::kMethod), {.body = message.to_json()},
      [weak = weak_from_this(), lease = lease_->lease](Result<control::Payload> reply) {
        const auto self = weak.lock();
        if (!self || !self->broker_ || !self->lease_ || self->lease_->lease != lease) return;
        const auto renewed = reply ? cli::read_answer<wire::LeaseRenewed>(reply->body)
                                   : std::unexpected(reply.error());
        if (renewed) self->lease_->deadline_boottime_ns = renewed->deadline_boottime_ns;
        // A lease that is over: the worker tells the stream, with the reason and the tokens.
        if (!renewed && !is_retryable(renewed.error().code)) self->renew_timer_.reset();
      },
      kCallTimeout);
  renew_later();
}

void LeaseHolder::release_lease(LeaseId lease, control::Peer::ReplyHandler on_reply) {
  const wire::LeaseRelease message{.lease = lease, .request_id = fresh_request_id()};
  broker_->call(std::string(wire::LeaseRelease::kMethod), {.body = message.to_json()},
                std::move(on_reply), kCallTimeout);
}

void LeaseHolder::release(Duration patience, std::move_only_function<void()> done) {
  renew_timer_.reset();
  if (!broker_ || !lease_) {
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
  release_timer_ = timers_.after(patience, finish);
  release_lease(lease_->lease, [finish](Result<control::Payload>) { finish(); });
}

}  // namespace leasehold::tenant
