#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "broker/core.hpp"
#include "broker/decide/deciders.hpp"
#include "broker/decide/take_back.hpp"

namespace leasehold {
namespace {

/// An unmap is control work behind prefaults and the like, so it gets more patience than a unit.
constexpr int kUnmapPatience = 5;

/// When the worker must be killed unless this lease got on; nothing while it owes nothing, or while
/// it may still come back.
std::optional<TimePoint> ladder_deadline(const State& state, const LeaseRecord& record) {
  const Worker& worker = *state.workers.find(record.worker());
  if (worker.killed || worker.reattach_until != TimePoint{}) return std::nullopt;
  const Duration patience = state.config.fence_patience;
  if (const auto* revoked = std::get_if<Lease<Revoked>>(&record.lease)) {
    return std::max(revoked->state().at, worker.patience_from) + patience;
  }
  if (const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease)) {
    return std::max(fenced->state().at, worker.patience_from) + kUnmapPatience * patience;
  }
  return std::nullopt;
}

bool passed(TimePoint deadline, TimePoint now) {
  return deadline != TimePoint{} && deadline <= now;
}

void expire(Decision& decision) {
  const TimePoint now = decision.now;
  const auto drained = open_leases_where(decision.state, [now](const LeaseRecord& record) {
    return passed(record.drain_deadline, now);
  });
  take_back(decision, drained, RevokeReason::DrainDeadline);
  const auto expired = open_leases_where(
      decision.state, [now](const LeaseRecord& record) { return passed(record.deadline, now); });
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
  const auto held = open_leases_where(
      decision.state, [&](const LeaseRecord& record) { return record.worker() == worker.id; });
  take_back(decision, held, RevokeReason::WorkerHung);
}

void climb_ladder(Decision& decision) {
  std::set<AttachmentId> overdue;
  for (const LeaseId id : decision.state.leases.open_leases()) {
    const LeaseRecord& record = decision.state.leases.at(id);
    const auto deadline = ladder_deadline(decision.state, record);
    if (deadline && *deadline <= decision.now) overdue.insert(record.worker());
  }
  for (const AttachmentId id : overdue) {
    Worker& worker = *decision.state.workers.find(id);
    if (worker.state != WorkerState::Gone) kill_worker(decision, worker);
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
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.is(LeaseState::Live)) {
      consider(record.deadline);
      consider(record.drain_deadline);
      return;
    }
    consider(ladder_deadline(state, record).value_or(TimePoint{}));
  });
  for (const auto& [id, worker] : state.workers.all()) consider(worker.reattach_until);
  return earliest;
}

}  // namespace leasehold
