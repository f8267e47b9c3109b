#include "ipc/client/lease_replacement.hpp"

#include <algorithm>
#include <utility>

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

bool TenantSession::LeaseReplacement::may_replace() const {
  return session_.config_.rebind && session_.config_.moves && session_.state_ == State::Streaming &&
         !session_.cancelled_ && !is_moving_ &&
         session_.leases_.accepted() == session_.held().lease;
}

void TenantSession::LeaseReplacement::draining(const wire::LeaseDraining& notice) {
  if (!notice.successor) return replace(wire::RebindMode::Checkpoint);
  leaving_ = notice.lease;
  replace(wire::RebindMode::Failover);
}

/// Renewals keep a lease until its last deadline; a lease without a last deadline needs no
/// replacement.
void TenantSession::LeaseReplacement::plan() {
  if (leaving_ == session_.held().lease) return replace(wire::RebindMode::Failover);
  const TimePoint last{session_.held().last_deadline_boottime_ns};
  if (last == TimePoint{} || !may_replace()) return;
  const Duration left = last - session_.timers_.now();
  const Duration margin = std::min(std::max(kReplaceMargin, kMoveMargin * last_move_), left / 2);
  replace_later(std::max(Duration::zero(), left - margin), wire::RebindMode::Preemptive);
}

void TenantSession::LeaseReplacement::replace_later(Duration delay, wire::RebindMode mode) {
  timer_ = session_.timers_.after(delay, [this, mode] { replace(mode); });
}

void TenantSession::LeaseReplacement::replace(wire::RebindMode mode) {
  if (!may_replace()) return;
  SessionLease& holder = *session_.holder_;
  if (holder.is_reconnecting()) return replace_later(kMoveRetryDelay, mode);
  if (!holder.is_live()) return;
  is_moving_ = true;
  is_failing_over_ = mode == wire::RebindMode::Failover;
  if (!is_failing_over_) session_.leases_.begin_rebind(session_.timers_.now());
  holder.replace({.mode = mode, .any_arithmetic = session_.config_.any_arithmetic},
                 session_.unless_over(
                     [mode](TenantSession& session, const Result<wire::LeaseAcquired>& result) {
                       session.replacement_->replaced(mode, result);
                     }));
}

void TenantSession::LeaseReplacement::replaced(wire::RebindMode mode,
                                               const Result<wire::LeaseAcquired>& result) {
  const bool is_awaited = std::exchange(is_awaited_, false);
  const bool fails_over = std::exchange(is_failing_over_, false);
  if (!result && is_awaited) return session_.acquire();
  if (!result) return refused(mode, result.error(), fails_over);
  timer_.reset();
  if (fails_over) return failed_over(*result);
  session_.granted(*result, 0);
  if (is_awaited) return session_.submit();
  if (is_moving_) move(mode);
}

/// After a final refusal the session rebinds once the lease has ended. Draining is final here,
/// because a drain of the tenant or the worker does not end by itself.
void TenantSession::LeaseReplacement::refused(wire::RebindMode mode, const Error& error,
                                              bool was_failing_over) {
  if (!std::exchange(is_moving_, false)) return;  // the stream has ended
  if (auto rebind = std::exchange(on_failover_refused_, nullptr)) return rebind();
  session_.leases_.give_up_rebind();
  if (!was_failing_over && leaving_ == session_.held().lease)
    return replace(wire::RebindMode::Failover);
  const bool is_final = !is_retryable(error.code) || error.code == Errc::Draining;
  if (!is_final) return replace_later(retry_delay(error), mode);
  if (!was_failing_over) return;
  leaving_.reset();
  plan();
}

bool TenantSession::LeaseReplacement::takes_end(Stage stage,
                                                std::move_only_function<void()> otherwise) {
  if (!is_failing_over_ || stage != Stage::Worker || session_.cancelled_) return false;
  session_.state_ = State::Rebinding;
  session_.stream_.reset();
  session_.leases_.begin_rebind(session_.timers_.now());
  on_failover_refused_ = std::move(otherwise);
  return true;
}

void TenantSession::LeaseReplacement::stop() {
  is_moving_ = is_failing_over_ = false;
  on_failover_refused_ = nullptr;
  timer_.reset();
}

bool TenantSession::LeaseReplacement::await_reply() {
  return is_awaited_ = session_.holder_->is_replacing();
}

/// Tokens that the old worker sent and that did not arrive are computed again.
void TenantSession::LeaseReplacement::failed_over(const wire::LeaseAcquired& acquired) {
  is_moving_ = false;
  on_failover_refused_ = nullptr;
  if (session_.stream_ && (session_.cancelled_ || session_.is_whole()))
    return;  // the stream's end follows
  session_.stream_.reset();
  session_.leases_.begin_rebind(session_.timers_.now());
  session_.leases_.set_mode(wire::RebindMode::Failover);
  // The named worker may have stopped.
  if (session_.config_.worker) session_.config_.worker = acquired.worker;
  session_.acquired(acquired);
}

void TenantSession::LeaseReplacement::move(wire::RebindMode mode) {
  if (!session_.stream_ || session_.state_ != State::Streaming) return;
  session_.stream_->move(
      session_.held().token,
      session_.unless_over([mode](TenantSession& session, const Result<void>& result) {
        session.replacement_->moved(mode, result);
      }));
}

/// A request that cannot move continues until the old lease ends; the session then submits it again
/// under the new lease.
void TenantSession::LeaseReplacement::moved(wire::RebindMode mode, const Result<void>& result) {
  if (!is_moving_) return;
  if (!result) {
    if (!is_retryable(result.error().code)) return;
    timer_ = session_.timers_.after(retry_delay(result.error()), [this, mode] { move(mode); });
    return;
  }
  is_moving_ = false;
  session_.holder_->release_previous();
  session_.leases_.set_mode(mode);
  last_move_ = session_.accepted_under_held({});
  plan();
}

}  // namespace leasehold::client
