#include "broker/server/loop_timers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/server/connections/operators.hpp"
#include "broker/server/views/views.hpp"
#include "common/machine/service_manager.hpp"

namespace leasehold {

Result<void> LoopTimers::create(boost::asio::io_context& io) {
  deadline_timer_ =
      TRY(AsyncBoottimeTimer::create(io, [this] { dependencies_.loop.post(Tick{}); }));
  wakeup_timer_ = TRY(AsyncBoottimeTimer::create(io, [this] { wake_up(); }));
  wall_clock_ = TRY(WallClockWatch::create(
      io, [this](Duration offset) { dependencies_.loop.post(ClockSet{offset}); }));
  return {};
}

void LoopTimers::after_event() {
  deadline_timer_->arm(next_deadline(dependencies_.state));
  if (dependencies_.table.has_detected_tampering()) repair_table();
  wakeups_.status_changed();
  arm_wakeup();
}

/// While no timeout runs, a long sleep of the loop is not a stall.
void LoopTimers::arm_wakeup() {
  for (const auto& [id, worker] : dependencies_.state.workers.all())
    table_is_writable_ = table_is_writable_ || is_operator(worker.uid);
  const Wakeups::Reasons reasons{
      .table_is_writable = table_is_writable_,
      .awaits_timeout = awaits_timeout(dependencies_.state),
      .connections_need_checks = dependencies_.connections.has_pending_checks()};
  if (!reasons.awaits_timeout) dependencies_.loop.rest();
  const auto next = wakeups_.next(reasons, dependencies_.clock.now());
  if (!next || (wakeup_at_ && *wakeup_at_ <= *next)) return;
  wakeup_at_ = next;
  wakeup_timer_->arm(next);
}

void LoopTimers::wake_up() {
  wakeup_at_.reset();
  dependencies_.loop.poll();
  if (table_is_writable_) repair_table();
  dependencies_.connections.check();
  report_status();
  arm_wakeup();
}

/// Repairs the table from the broker's copy, and then posts what was changed.
void LoopTimers::repair_table() {
  auto tampered = dependencies_.table.repair();
  if (!tampered.empty()) dependencies_.loop.post(TableTampered{std::move(tampered)});
}

/// Sends the status, which also feeds the watchdog. If the loop hangs, the service manager gets
/// nothing and restarts the broker.
void LoopTimers::report_status() {
  if (!wakeups_.take_status_due(dependencies_.clock.now())) return;
  const State& state = dependencies_.state;
  const auto workers = std::ranges::count_if(state.workers.all(), [](const auto& entry) {
    return entry.second.state <= WorkerState::Ready;
  });
  notify_service_manager(fmt::format("WATCHDOG=1\nSTATUS=Serving {} workers, {} tenants, {} leases",
                                     workers, state.tenants.all().size(),
                                     leases_not_fenced(state)));
}

}  // namespace leasehold
