// The part of TenantSession that moves its request to a second lease before the first one ends, on
// the same worker or on one that replaces it.
#include <algorithm>
#include <utility>

#include "ipc/client/session.hpp"

namespace leasehold::client {
namespace {

/// A replacement begins kReplaceMargin before the lease's lifetime ends, or kMoveMargin times the
/// duration of the last move, but not in the first half of the lifetime.
constexpr Duration kReplaceMargin = std::chrono::milliseconds(500);
constexpr int kMoveMargin = 8;
constexpr Duration kMoveRetryDelay = std::chrono::milliseconds(50);

Duration retry_delay(const Error& error) {
  return std::max<Duration>(kMoveRetryDelay, std::chrono::milliseconds(error.retry_after_ms));
}

}  // namespace

bool TenantSession::may_replace() const {
  return config_.rebind && config_.moves && state_ == State::Streaming && !cancelled_ &&
         !is_moving_ && accepted_lease_ == holder_->lease()->lease;
}

void TenantSession::lease_draining(const wire::LeaseDraining& notice) {
  if (!notice.successor) return replace(wire::RebindMode::Checkpoint);
  leaving_ = notice.lease;
  replace(wire::RebindMode::Failover);
}

/// Renewals keep a lease until its last deadline; a lease without a last deadline needs no
/// replacement.
void TenantSession::plan_replacement() {
  if (leaving_ == holder_->lease()->lease) return replace(wire::RebindMode::Failover);
  const TimePoint last{holder_->lease()->last_deadline_boottime_ns};
  if (last == TimePoint{} || !may_replace()) return;
  const Duration left = last - timers_.now();
  const Duration margin = std::min(std::max(kReplaceMargin, kMoveMargin * last_move_), left / 2);
  replacement_timer_ = timers_.after(std::max(Duration::zero(), left - margin),
                                     [this] { replace(wire::RebindMode::Preemptive); });
}

void TenantSession::replace(wire::RebindMode mode) {
  if (!may_replace()) return;
  if (holder_->is_reconnecting()) {
    replacement_timer_ = timers_.after(kMoveRetryDelay, [this, mode] { replace(mode); });
    return;
  }
  if (!holder_->is_live()) return;
  is_moving_ = true;
  is_failing_over_ = mode == wire::RebindMode::Failover;
  if (!is_failing_over_) rebind_began_ = timers_.now();
  holder_->replace({.mode = mode, .any_arithmetic = config_.any_arithmetic},
                   [weak = weak_from_this(), mode](const Result<wire::LeaseAcquired>& result) {
                     const auto self = weak.lock();
                     if (self && !self->is_over()) self->replaced(mode, result);
                   });
}

/// A rebind that waits for this reply continues with it. After a final refusal the session rebinds
/// once the lease has ended. Draining is final here, because a drain of the tenant or the worker
/// does not end by itself.
void TenantSession::replaced(wire::RebindMode mode, const Result<wire::LeaseAcquired>& result) {
  const bool is_awaited = std::exchange(awaits_replacement_, false);
  const bool fails_over = std::exchange(is_failing_over_, false);
  if (!result && is_awaited) return acquire();
  if (!result) {
    if (!is_moving_) return;  // the stream has ended
    is_moving_ = false;
    if (auto rebind = std::exchange(on_failover_refused_, nullptr)) return rebind();
    rebind_began_.reset();
    const Errc code = result.error().code;
    if (!fails_over && leaving_ == holder_->lease()->lease)
      return replace(wire::RebindMode::Failover);
    const bool is_final = !is_retryable(code) || code == Errc::Draining;
    if (is_final && fails_over) {
      leaving_.reset();
      return plan_replacement();
    }
    if (is_final) return;
    replacement_timer_ =
        timers_.after(retry_delay(result.error()), [this, mode] { replace(mode); });
    return;
  }
  replacement_timer_.reset();
  if (fails_over) return failed_over(*result);
  observer_(Acquired{.lease = result->lease,
                     .worker = result->worker,
                     .blocks = result->blocks,
                     .ttl_ms = result->ttl_ms,
                     .deadline_boottime_ns = result->deadline_boottime_ns,
                     .replaces = replaceable_});
  last_lease_ = replaceable_ = result->lease;
  if (is_awaited) return submit();
  if (is_moving_) move(mode);
}

/// In a failover the old lease ends before the reply. So the end of the stream is handled when the
/// reply arrives, which grants the lease on another worker or refuses it.
bool TenantSession::ends_in_failover(Stage stage, std::move_only_function<void()> otherwise) {
  if (!is_failing_over_ || stage != Stage::Worker || cancelled_) return false;
  state_ = State::Rebinding;
  stream_.reset();
  rebind_began_ = timers_.now();
  on_failover_refused_ = std::move(otherwise);
  return true;
}

/// Tokens that the old worker sent and that did not arrive are computed again.
void TenantSession::failed_over(const wire::LeaseAcquired& acquired) {
  is_moving_ = false;
  on_failover_refused_ = nullptr;
  if (stream_ && (cancelled_ || is_whole())) return;  // the stream's end follows
  stream_.reset();
  if (!rebind_began_) rebind_began_ = timers_.now();
  rebind_mode_ = wire::RebindMode::Failover;
  if (config_.worker) config_.worker = acquired.worker;  // the named worker may have stopped
  this->acquired(acquired);
}

void TenantSession::move(wire::RebindMode mode) {
  if (!stream_ || state_ != State::Streaming) return;
  stream_->move(holder_->lease()->token,
                [weak = weak_from_this(), mode](const Result<void>& result) {
                  const auto self = weak.lock();
                  if (self && !self->is_over()) self->moved(mode, result);
                });
}

/// A request that cannot move continues until the old lease ends; the session then submits it again
/// under the new lease.
void TenantSession::moved(wire::RebindMode mode, const Result<void>& result) {
  if (!is_moving_) return;
  if (!result) {
    if (!is_retryable(result.error().code)) return;
    replacement_timer_ = timers_.after(retry_delay(result.error()), [this, mode] { move(mode); });
    return;
  }
  is_moving_ = false;
  holder_->release_previous();
  const LeaseId now_under = holder_->lease()->lease;
  const auto before = std::exchange(accepted_lease_, now_under);
  const auto began = std::exchange(rebind_began_, std::nullopt);
  last_move_ = timers_.now() - began.value_or(timers_.now());
  observer_(Rebound{.old_lease = before.value_or(now_under),
                    .new_lease = now_under,
                    .delivered_tokens = ledger_.size(),
                    .mode = mode,
                    .took = last_move_});
  plan_replacement();
}

}  // namespace leasehold::client
