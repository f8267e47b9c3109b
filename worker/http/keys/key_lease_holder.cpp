#include "worker/http/keys/key_lease_holder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/random.hpp"

namespace leasehold::http {
namespace {

using client::SessionLease;

constexpr Duration kReleaseTimeout = std::chrono::seconds(2);
/// Released memory is scrubbed before it is lent again, so a refused acquisition is tried again.
constexpr Duration kAskInterval = std::chrono::milliseconds(20);
constexpr Duration kMaxAskTime = std::chrono::seconds(1);

bool lacks_memory(Errc code) {
  return code == Errc::QuotaBlocks || code == Errc::PoolExhausted;
}

Error replaced_otherwise() {
  return {Errc::QueueFull, "the lease of this API key is being replaced; retry in a moment"};
}

}  // namespace

/// One session's share of its key's lease.
class KeyLeaseHolder::Share final : public SessionLease,
                                    public std::enable_shared_from_this<Share> {
 public:
  Share(std::shared_ptr<KeyLeaseHolder> leases, ApiKeyId key, RequestId request)
      : leases_(std::move(leases)), key_(std::move(key)), request_(std::move(request)) {}
  /// Runs when the session is dropped. Uses nothing of `io`, which may have ended.
  ~Share() override {
    for (const auto& number : {previous_, number_})
      if (number) leases_->leave(*this, *number);
  }

  void set_handlers(Handlers handlers) override { handlers_ = std::move(handlers); }

  void acquire(const wire::LeaseAcquire& wanted, AcquireHandler done) override {
    on_replaced_ = nullptr;
    leave();
    wanted_ = wanted;
    on_acquired_ = std::move(done);
    leases_->join(shared_from_this());
  }

  void replace(wire::LeaseReplace wanted, AcquireHandler done) override {
    on_replaced_ = std::move(done);
    leases_->replace(shared_from_this(), wanted);
  }

  void release_previous() override {
    if (const auto previous = std::exchange(previous_, std::nullopt))
      leases_->leave(*this, *previous);
    if (std::exchange(is_on_previous_, false)) leases_->left_previous(*number_);
    leases_->release_unused();
  }

  bool is_live() const override {
    const Held* held = find();
    return held != nullptr && held->holder->is_live();
  }
  bool is_reconnecting() const override {
    const Held* held = find();
    return held != nullptr && held->holder->is_reconnecting();
  }
  bool is_replacing() const override { return on_replaced_ != nullptr; }

  /// A draining lease takes no more requests, but its running requests continue.
  void note_refused(Errc code) override {
    Held* held = find();
    const bool is_present =
        held != nullptr && held->holder->lease() && is_under(held->holder->lease()->lease);
    if (!is_present) return;
    held->holder->note_refused(code);
    if (is_lease_ended(code)) leases_->close(*number_, Why::Ended);
    if (code == Errc::Draining) leases_->close(*number_, Why::Draining);
  }

  void session_ended(Duration, std::move_only_function<void()> done) override {
    on_acquired_ = nullptr;
    on_replaced_ = nullptr;
    leave();
    leases_->release_unused();
    done();
  }

  const std::optional<wire::LeaseAcquired>& lease() const override { return lease_; }

 private:
  friend KeyLeaseHolder;

  Held* find() const { return number_ ? leases_->find(*number_) : nullptr; }
  bool is_under(LeaseId lease) const { return lease_ && lease_->lease == lease; }

  void leave() {
    if (std::exchange(is_on_previous_, false)) leases_->left_previous(*number_);
    for (auto* const number : {&previous_, &number_})
      if (const auto left = std::exchange(*number, std::nullopt)) leases_->leave(*this, *left);
  }

  void acquired(const Result<wire::LeaseAcquired>& result) {
    if (result) lease_ = *result;
    std::exchange(on_acquired_, nullptr)(result);
  }

  void replaced(const Result<wire::LeaseAcquired>& result) {
    if (result) lease_ = *result;
    std::exchange(on_replaced_, nullptr)(result);
  }

  std::shared_ptr<KeyLeaseHolder> leases_;
  ApiKeyId key_;
  RequestId request_;
  Handlers handlers_;
  std::optional<Number> number_;
  std::optional<Number> previous_;  // a lease that this share has not left yet
  bool is_on_previous_ = false;     // the replaced lease is not left yet
  std::optional<wire::LeaseAcquired> lease_;
  wire::LeaseAcquire wanted_;
  AcquireHandler on_acquired_;  // set while an acquisition is pending
  AcquireHandler on_replaced_;  // set while a replacement is pending
};

std::shared_ptr<KeyLeaseHolder> KeyLeaseHolder::create(boost::asio::io_context& io,
                                                       client::Timers& timers,
                                                       std::string broker_path, Duration idle_ttl) {
  return std::shared_ptr<KeyLeaseHolder>(
      new KeyLeaseHolder(io, timers, std::move(broker_path), idle_ttl));
}

std::shared_ptr<SessionLease> KeyLeaseHolder::share(ApiKeyId key, RequestId request) {
  return std::make_shared<Share>(shared_from_this(), std::move(key), std::move(request));
}

/// A request that moves between leases may run under either of them, and the key may have a third
/// lease by now. So every lease of the request is kept.
void KeyLeaseHolder::keep(const ApiKeyId& key, const RequestId& request, Duration time) {
  for (const auto& [number, held] : held_)
    for (const auto& share : shares_of(number))
      if (share->key_ == key && share->request_ == request)
        table_.keep(number, request, timers_.now() + time);
}

void KeyLeaseHolder::finished(const TenantId& tenant, const RequestId& request) {
  table_.finished(tenant, request);
  release_unused();
}

KeyLeaseHolder::Held* KeyLeaseHolder::find(Number number) {
  const auto found = held_.find(number);
  return found == held_.end() ? nullptr : &found->second;
}

/// Returns a copy, because the callbacks of shares may add and remove shares.
std::vector<std::shared_ptr<KeyLeaseHolder::Share>> KeyLeaseHolder::shares_of(Number number) {
  std::vector<std::shared_ptr<Share>> shares;
  if (const Held* held = find(number))
    for (const auto& weak : held->shares)
      if (auto share = weak.lock()) shares.push_back(std::move(share));
  return shares;
}

SessionLease::Handlers KeyLeaseHolder::handlers_of(Number number) {
  const auto weak = weak_from_this();
  return {.on_lost =
              [weak, number](const Error& error) {
                const auto self = weak.lock();
                if (!self) return;
                for (const auto& share : self->shares_of(number))
                  if (share->lease_) share->handlers_.on_lost(error);
              },
          .on_revoked =
              [weak, number](const wire::LeaseRevoked& revoked) {
                const auto self = weak.lock();
                if (!self) return;
                self->close(number, Why::Ended);
                for (const auto& share : self->shares_of(number))
                  if (share->is_under(revoked.lease)) share->handlers_.on_revoked(revoked);
              },
          .on_draining =
              [weak, number](const wire::LeaseDraining& notice) {
                if (const auto self = weak.lock()) self->draining(number, notice);
              }};
}

// ---------------------------------------------------------------- acquire

void KeyLeaseHolder::join(const std::shared_ptr<Share>& share) {
  close_if_over(share->key_);
  const auto joined = table_.join(share->key_, share->wanted_.tenant, timers_.now());
  if (const auto* error = std::get_if<Error>(&joined))
    return share->acquired(std::unexpected(*error));
  const auto* begun = std::get_if<KeyLeaseTable::Acquire>(&joined);
  const Number number = *table_.lease_of(share->key_);
  share->number_ = number;
  if (begun != nullptr) {
    auto holder = client::LeaseHolder::create(io_, timers_, broker_path_, handlers_of(number));
    held_.emplace(number, Held{.key = share->key_,
                               .holder = std::move(holder),
                               .wanted = share->wanted_,
                               .shares = {share}});
    Held& held = held_.at(number);
    if (const auto ended = ended_.extract(share->key_); ended && !held.wanted.replaces)
      held.wanted.replaces = ended.mapped();
    ask(number);
  } else {
    Held& held = held_.at(number);
    held.shares.push_back(share);
    const bool is_usable = std::holds_alternative<KeyLeaseTable::Use>(joined);
    if (is_usable && !held.holder->is_replacing())
      share->acquired(wire::LeaseAcquired(*held.holder->lease()));
  }
  release_unused();
}

void KeyLeaseHolder::ask(Number number) {
  Held& held = held_.at(number);
  held.wanted.request_id = RequestId{mint_request_id()};
  held.holder->acquire(
      held.wanted, [weak = weak_from_this(), number](const Result<wire::LeaseAcquired>& result) {
        const auto self = weak.lock();
        if (self && self->find(number) != nullptr) self->answered(number, result);
      });
}

void KeyLeaseHolder::answered(Number number, const Result<wire::LeaseAcquired>& result) {
  if (!result) return refused(number, as_local_error(result.error()));
  table_.granted(number);
  for (const auto& share : shares_of(number))
    if (share->on_acquired_ && share->number_ == number) share->acquired(result);
  release_unused();
}

/// Releases idle leases if the error is a lack of what they hold, and then asks again.
void KeyLeaseHolder::refused(Number number, const Error& error) {
  Held& held = held_.at(number);
  const TimePoint now = timers_.now();
  // A restarted broker may not know the lease that this one replaces.
  if (error.code == Errc::UnknownLease && std::exchange(held.wanted.replaces, std::nullopt))
    return ask(number);
  const auto idle = table_.take_idle_for(number, error, now);
  if (!idle.empty()) held.retry_until = now + kMaxAskTime;
  for (const Number each : idle) release(each);
  if (lacks_memory(error.code) && now < held.retry_until) {
    held.ask_timer = timers_.after(kAskInterval, [weak = weak_from_this(), number] {
      if (const auto self = weak.lock()) self->ask(number);
    });
    return;
  }
  const auto shares = shares_of(number);
  release(number);  // closes the connection; there is no lease
  table_.refused(number, error, now);
  for (const auto& share : shares) {
    if (share->number_ == number) share->number_.reset();
    if (share->on_acquired_) share->acquired(std::unexpected(error));
  }
}

// ---------------------------------------------------------------- replace

/// A request that is not under its key's current lease moves to that lease. Otherwise the current
/// lease is replaced.
void KeyLeaseHolder::replace(const std::shared_ptr<Share>& share,
                             const wire::LeaseReplace& wanted) {
  const auto current = table_.lease_of(share->key_);
  const Number number = *share->number_;
  if (!current || *current == number) return replace_in_place(number, share, wanted);
  Held& held = held_.at(*current);
  if (!held.holder->lease() || share->previous_ || share->is_on_previous_)
    return share->replaced(std::unexpected(replaced_otherwise()));
  (void)table_.join(share->key_, share->wanted_.tenant, timers_.now());
  held.shares.push_back(share);
  share->previous_ = std::exchange(share->number_, *current);
  share->replaced(wire::LeaseAcquired(*held.holder->lease()));
}

void KeyLeaseHolder::replace_in_place(Number number, const std::shared_ptr<Share>& share,
                                      const wire::LeaseReplace& wanted) {
  Held& held = held_.at(number);
  if (!share->is_under(held.holder->lease()->lease))
    return share->replaced(wire::LeaseAcquired(*held.holder->lease()));
  if (held.holder->is_replacing()) {
    if (held.replacing_mode != wanted.mode) share->replaced(std::unexpected(replaced_otherwise()));
    return;
  }
  for (const auto& each : shares_of(number))  // the holder can have only one previous lease
    if (each->number_ == number && each->is_on_previous_)
      return share->replaced(std::unexpected(replaced_otherwise()));
  held.replacing_mode = wanted.mode;
  held.holder->replace(
      wanted, [weak = weak_from_this(), number](const Result<wire::LeaseAcquired>& result) {
        const auto self = weak.lock();
        if (!self || self->find(number) == nullptr) return;
        result ? self->replaced(number, result) : self->not_replaced(number, result.error());
      });
}

/// The old lease is released once every request has left it.
void KeyLeaseHolder::replaced(Number number, const Result<wire::LeaseAcquired>& result) {
  Held& held = held_.at(number);
  if (!table_.lease_of(held.key)) table_.reopen(number);
  const auto shares = shares_of(number);
  for (const auto& share : shares)
    if (share->number_ == number && !share->on_acquired_) share->is_on_previous_ = true;
  left_previous(number);
  for (const auto& share : shares) {
    if (share->number_ != number) continue;
    if (share->on_acquired_) {
      share->acquired(result);
    } else if (share->on_replaced_) {
      share->replaced(result);
    }
  }
}

/// Requests that waited for the replacement get the lease that is still there, or another one.
void KeyLeaseHolder::not_replaced(Number number, const Error& error) {
  close_if_over(held_.at(number).key);
  for (const auto& share : shares_of(number)) {
    if (share->number_ != number) continue;
    if (share->on_replaced_) {
      share->replaced(std::unexpected(error));
    } else if (share->on_acquired_) {
      share->acquire(share->wanted_, std::exchange(share->on_acquired_, nullptr));
    }
  }
}

/// Only the sessions can replace the lease before its deadline. A lease without requests has
/// nothing to move, so it is closed, unless a client may come back to a kept request under it.
void KeyLeaseHolder::draining(Number number, const wire::LeaseDraining& notice) {
  const auto shares = shares_of(number);
  if (shares.empty() && !table_.is_kept(number, timers_.now())) close(number, Why::Draining);
  for (const auto& share : shares)
    if (share->is_under(notice.lease)) share->handlers_.on_draining(notice);
}

// ---------------------------------------------------------------- the end

/// Does nothing while a replacement is in flight, even if the lease has ended, because the new
/// lease will take its place.
void KeyLeaseHolder::close(Number number, Why why) {
  const Held* held = find(number);
  if (held == nullptr || !held->holder->lease() || held->holder->is_replacing()) return;
  if (!held->shares.empty()) ended_.insert_or_assign(held->key, held->holder->lease()->lease);
  why == Why::Ended ? table_.ended(number) : table_.close(number);
  release_unused();
}

/// A lease ends without a notice if the broker is disconnected at the lease's deadline.
void KeyLeaseHolder::close_if_over(const ApiKeyId& key) {
  const auto number = table_.lease_of(key);
  const Held* held = number ? find(*number) : nullptr;
  if (held == nullptr || !held->holder->lease()) return;
  if (!held->holder->is_live() && !held->holder->is_reconnecting()) close(*number, Why::Ended);
}

void KeyLeaseHolder::leave(const Share& share, Number number) {
  if (Held* held = find(number)) {
    std::erase_if(held->shares, [&share](const std::weak_ptr<Share>& each) {
      const auto locked = each.lock();
      return !locked || locked.get() == &share;
    });
  }
  table_.left(number);
}

void KeyLeaseHolder::left_previous(Number number) {
  const auto is_there = [number](const auto& share) {
    return share->number_ == number && share->is_on_previous_;
  };
  Held* held = find(number);
  if (held != nullptr && std::ranges::none_of(shares_of(number), is_there))
    held->holder->release_previous();
}

/// The callback keeps the holder alive until the release is over.
void KeyLeaseHolder::release(Number number) {
  const auto held = held_.extract(number);
  if (!held) return;
  if (!table_.lease_of(held.mapped().key)) ended_.erase(held.mapped().key);
  const auto holder = held.mapped().holder;
  holder->release(kReleaseTimeout, [holder] {});
}

void KeyLeaseHolder::release_unused() {
  const TimePoint now = timers_.now();
  for (const Number number : table_.take_unused(now)) release(number);
  expiry_timer_.reset();
  const auto next = table_.next_expiry();
  if (next) expiry_timer_ = timers_.after(*next - now, [this] { release_unused(); });
}

}  // namespace leasehold::http
