#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/core.hpp"
#include "broker/decide/deciders.hpp"
#include "broker/decide/liveness.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

/// An unmap is control work behind prefaults and the like, so it gets more patience than a unit.
constexpr int kUnmapPatience = 5;

/// What a worker must have done by when, or it is killed.
struct Debt {
  TimePoint until;
  std::string_view waiting_for;
  Duration allowed;
};

class EarliestDebt {
 public:
  void owed(std::string_view what, TimePoint since, Duration allowed) {
    const TimePoint until = since + allowed;
    if (!found_ || until < found_->until) found_ = Debt{until, what, allowed};
  }
  const std::optional<Debt>& found() const { return found_; }

 private:
  std::optional<Debt> found_;
};

/// The first of its debts to fall due; nothing while it waiting_for nothing, or while it may still
/// come back. Who has exited waiting_for nothing: a debt nobody can pay would be due for ever.
std::optional<Debt> debt_of(const State& state, const Worker& worker) {
  if (worker.state == WorkerState::Gone || worker.killed) return std::nullopt;
  if (worker.reattach_until != TimePoint{}) return std::nullopt;
  const LeaseIndex::OfWorker& held = state.leases.index().of(worker.id);
  EarliestDebt debts;
  const auto owed = [&](std::string_view what, const LeaseIndex::ByTime& since, Duration allowed) {
    if (since.empty()) return;
    debts.owed(what, std::max(since.begin()->first, worker.patience_from), allowed);
  };
  owed("fence_proof", held.revoked, state.config.fence_timeout);
  owed("unmap", held.fenced, kUnmapPatience * state.config.fence_timeout);
  const Duration patience = state.config.worker_timeout;
  if (patience == Duration::zero()) return debts.found();
  owed("answer", held.asked, patience);
  if (worker.resuming) debts.owed("delivery", worker.delivered_at, patience);
  return debts.found();
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

void climb_ladder(Decision& decision) {
  for (const auto& [id, each] : decision.state.workers.all()) {
    const std::optional<Debt> debt = debt_of(decision.state, each);
    if (!debt || debt->until > decision.now) continue;
    kill_worker(decision, *decision.state.workers.find(id), debt->waiting_for, debt->allowed);
  }
}

}  // namespace

void honour_deadlines(Decision& decision) {
  const auto due = next_deadline(decision.state);
  if (!due || *due > decision.now) return;
  expire(decision);
  end_grace(decision);
  look_for_life(decision);
  climb_ladder(decision);
}

void decide_event(Decision&, const Tick&) {}  // honour_deadlines came first, as before every event

/// Whoever could not be heard is not late: a debt, a grace and a look begin where the broker went
/// on. A lease that ran out meanwhile has run out: its worker stopped at the deadline by itself.
void decide_event(Decision& decision, const BrokerStalled& stood) {
  for (const auto& [id, each] : decision.state.workers.all()) {
    Worker& worker = *decision.state.workers.find(id);
    worker.patience_from = std::max(worker.patience_from, decision.now);
    worker.delivered_at = decision.now;
    if (worker.reattach_until != TimePoint{})
      worker.reattach_until = worker.reattach_until + stood.gap;
    if (worker.next_look != TimePoint{}) begin_looking(decision, worker);
  }
  decision.warn(fmt::format("the broker itself stood, nobody is judged for that time gap_ms={}",
                            stood.gap / std::chrono::milliseconds(1)));
}

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
    consider(worker.next_look);
    if (const auto debt = debt_of(state, worker)) consider(debt->until);
  }
  return earliest;
}

}  // namespace leasehold
