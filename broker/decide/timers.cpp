#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "broker/decide/core.hpp"
#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/tenant/cell.hpp"
#include "broker/decide/tenant/keys.hpp"
#include "broker/decide/tenant/quota.hpp"
#include "broker/decide/worker/liveness.hpp"
#include "broker/decide/worker/worker_replace.hpp"

namespace leasehold {
namespace {

/// An unmap waits behind prefaults in the worker, so it has a longer timeout than a fence proof.
constexpr int kUnmapTimeoutFactor = 5;

/// A timeout of a worker. The broker kills the worker at `until` if it still waits for
/// `waiting_for`.
struct Timeout {
  TimePoint until;
  std::string_view waiting_for;
  Duration allowed;
};

/// Returns the earliest timeout of the worker. A worker that may still resume has none. A worker
/// that has exited or was killed has none either, because its timeout would remain due for ever.
std::optional<Timeout> timeout_of(const State& state, const Worker& worker) {
  if (worker.state == WorkerState::Gone || worker.killed) return std::nullopt;
  if (worker.reattach_until != TimePoint{}) return std::nullopt;
  const LeaseIndex::WorkerEntry& held = state.leases.index().of(worker.id);
  std::optional<Timeout> earliest;
  const auto add = [&earliest](std::string_view what, TimePoint since, Duration allowed) {
    const TimePoint until = since + allowed;
    if (!earliest || until < earliest->until) earliest = Timeout{until, what, allowed};
  };
  const auto add_oldest = [&](std::string_view what, const LeaseIndex::ByTime& since,
                              Duration allowed) {
    if (since.empty()) return;
    add(what, std::max(since.begin()->first, worker.timeouts_from), allowed);
  };
  add_oldest("fence_proof", held.revoked, state.config.timeouts.fence);
  add_oldest("unmap", held.fenced, kUnmapTimeoutFactor * state.config.timeouts.fence);
  const Duration timeout = state.config.timeouts.worker;
  if (timeout == Duration::zero()) return earliest;
  add_oldest("answer", held.call_pending, timeout);
  if (worker.resuming) add("delivery", worker.delivered_at, timeout);
  return earliest;
}

bool passed(TimePoint deadline, TimePoint now) {
  return deadline != TimePoint{} && deadline <= now;
}

void expire(Decision& decision) {
  std::map<RevokeReason, std::vector<LeaseId>> ended;
  for (const auto& [time, id] : decision.state.leases.index().deadlines()) {
    if (time > decision.now) break;
    const LeaseRecord& record = decision.state.leases.at(id);
    ended[reason_at_deadline(decision.state, record, decision.now)].push_back(id);
  }
  for (const auto& [reason, leases] : ended) revoke_leases(decision, leases, reason);
}

void kill_overdue_workers(Decision& decision) {
  for (const auto& [id, each] : decision.state.workers.all()) {
    const std::optional<Timeout> timeout = timeout_of(decision.state, each);
    if (!timeout || timeout->until > decision.now) continue;
    kill_worker(decision, *decision.state.workers.find(id), timeout->waiting_for, timeout->allowed);
  }
}

}  // namespace

void apply_deadlines(Decision& decision) {
  const auto due = next_deadline(decision.state);
  if (!due || *due > decision.now) return;
  expire(decision);
  expire_keys(decision);
  if (passed(decision.state.day_quotas_end, decision.now)) begin_day(decision);
  expire_grace(decision);
  expire_replacements(decision);
  expire_retentions(decision);
  probe_liveness(decision);
  kill_overdue_workers(decision);
}

void decide_event(Decision&, const Tick&) {}  // `decide` has applied the deadlines already

/// The broker was not running, so timeouts and probes restart now, and the graces of workers are
/// extended by the gap. Expired TTLs stay expired: the worker has stopped at the deadline by
/// itself.
void decide_event(Decision& decision, const BrokerStalled& stalled) {
  for (const auto& [id, each] : decision.state.workers.all()) {
    Worker& worker = *decision.state.workers.find(id);
    worker.timeouts_from = std::max(worker.timeouts_from, decision.now);
    worker.delivered_at = decision.now;
    if (worker.reattach_until != TimePoint{})
      worker.reattach_until = worker.reattach_until + stalled.gap;
    if (worker.replacement && worker.replacement->until != TimePoint{})
      worker.replacement->until = worker.replacement->until + stalled.gap;
    if (worker.next_probe != TimePoint{}) start_liveness_probes(decision, worker);
  }
  decision.warn(fmt::format("the broker stalled; all timeouts restart now gap_ms={}",
                            stalled.gap / std::chrono::milliseconds(1)));
}

/// The new values do not affect graces that have begun and leases that are open.
void decide_event(Decision& decision, const ConfigReloaded& reloaded) {
  BrokerConfig& config = decision.state.config;
  config.timeouts.reclaim_grace = reloaded.reclaim_grace;
  config.timeouts.adopt_grace = reloaded.adopt_grace;
  config.max_engine_leases = reloaded.max_engine_leases;
  config.max_shared_blocks = reloaded.max_shared_blocks;
  config.max_shared_adapter_bytes = reloaded.max_shared_adapter_bytes;
}

/// The reason is Operator: stopping the service is an operator's action, and the list of reasons
/// has no closer one.
void decide_event(Decision& decision, const Shutdown&) {
  decision.state.stopping = true;
  revoke_leases(decision, decision.state.leases.open_leases(), RevokeReason::Operator);
  end_retention(decision, retained_where(decision.state, [](const auto&) { return true; }));
}

std::optional<TimePoint> next_deadline(const State& state) {
  std::optional<TimePoint> earliest;
  const auto consider = [&earliest](TimePoint deadline) {
    if (deadline != TimePoint{}) earliest = std::min(earliest.value_or(deadline), deadline);
  };
  const LeaseIndex::ByTime& ends = state.leases.index().deadlines();
  if (!ends.empty()) consider(ends.begin()->first);
  if (!state.retained.empty()) consider(state.retained.begin()->first);
  consider(state.waiting.first_end);
  consider(state.day_quotas_end);
  if (const auto expiry = state.api_keys.next_expiry_unix_ms()) consider(state.wall.at(*expiry));
  for (const auto& [id, worker] : state.workers.all()) {
    consider(worker.reattach_until);
    consider(worker.next_probe);
    if (worker.replacement) consider(worker.replacement->until);
    if (const auto timeout = timeout_of(state, worker)) consider(timeout->until);
  }
  return earliest;
}

bool awaits_timeout(const State& state) {
  return std::ranges::any_of(state.workers.all(), [&state](const auto& entry) {
    const Worker& worker = entry.second;
    const bool is_replaced = worker.replacement && worker.replacement->until != TimePoint{};
    return worker.reattach_until != TimePoint{} || is_replaced || worker.checks_since_ping > 0 ||
           timeout_of(state, worker).has_value();
  });
}

}  // namespace leasehold
