#include <fmt/format.h>

#include <algorithm>

#include "broker/core.hpp"
#include "broker/decide/deciders.hpp"
#include "broker/decide/take_back.hpp"

namespace leasehold {
namespace {

/// An unmap is control work behind prefaults and the like, so it gets more patience than a unit.
constexpr int kUnmapPatience = 5;

/// When the worker must be killed unless it got on; nothing while it owes nothing, or while it may
/// still come back.
std::optional<TimePoint> ladder_deadline(const State& state, const Worker& worker) {
  if (worker.killed || worker.reattach_until != TimePoint{}) return std::nullopt;
  const LeaseIndex::OfWorker& held = state.leases.index().of(worker.id);
  const Duration patience = state.config.fence_patience;
  std::optional<TimePoint> earliest;
  const auto owed = [&](const LeaseIndex::ByTime& since, Duration allowed) {
    if (since.empty()) return;
    const TimePoint until = std::max(since.begin()->first, worker.patience_from) + allowed;
    earliest = std::min(earliest.value_or(until), until);
  };
  owed(held.revoked, patience);
  owed(held.fenced, kUnmapPatience * patience);
  return earliest;
}

bool passed(TimePoint deadline, TimePoint now) {
  return deadline != TimePoint{} && deadline <= now;
}

void expire(Decision& decision) {
  std::vector<LeaseId> drained;
  std::vector<LeaseId> expired;
  for (const auto& [time, id] : decision.state.leases.index().deadlines()) {
    if (time > decision.now) break;
    const bool drain = passed(decision.state.leases.at(id).drain_deadline, decision.now);
    (drain ? drained : expired).push_back(id);
  }
  take_back(decision, drained, RevokeReason::DrainDeadline);
  take_back(decision, expired, RevokeReason::TtlExpired);
}

/// The last rung: a process that exits holds nothing.
void kill_worker(Decision& decision, Worker& worker) {
  worker.killed = true;
  decision.add(effect::KillWorker{worker.id});
  decision.warn(fmt::format("worker gave no proof in time, killed worker={} pid={} patience_ms={}",
                            worker.name, worker.pid,
                            decision.state.config.fence_patience / std::chrono::milliseconds(1)));
  move(worker, WorkerState::Lost);
  decision.touch(worker.id);
  take_back(decision, decision.state.leases.leases_on(worker.id), RevokeReason::WorkerHung);
}

void climb_ladder(Decision& decision) {
  for (const auto& [id, each] : decision.state.workers.all()) {
    const auto deadline = ladder_deadline(decision.state, each);
    const bool overdue = deadline && *deadline <= decision.now;
    if (!overdue || each.state == WorkerState::Gone) continue;
    kill_worker(decision, *decision.state.workers.find(id));
  }
}

}  // namespace

void honour_deadlines(Decision& decision) {
  const auto due = next_deadline(decision.state);
  if (!due || *due > decision.now) return;
  expire(decision);
  end_grace(decision);
  climb_ladder(decision);
}

void decide_event(Decision&, const Tick&) {}  // honour_deadlines came first, as before every event

/// The reason is `operator`: whoever stops the service acts as one, and no narrower word of the
/// closed list is true of leases that were taken back for no fault of theirs.
void decide_event(Decision& decision, const Shutdown&) {
  decision.state.stopping = true;
  take_back(decision, decision.state.leases.open_leases(), RevokeReason::Operator);
}

std::optional<TimePoint> next_deadline(const State& state) {
  std::optional<TimePoint> earliest;
  const auto consider = [&earliest](TimePoint deadline) {
    if (deadline != TimePoint{}) earliest = std::min(earliest.value_or(deadline), deadline);
  };
  const LeaseIndex::ByTime& ends = state.leases.index().deadlines();
  if (!ends.empty()) consider(ends.begin()->first);
  for (const auto& [id, worker] : state.workers.all()) {
    consider(worker.reattach_until);
    consider(ladder_deadline(state, worker).value_or(TimePoint{}));
  }
  return earliest;
}

}  // namespace leasehold
