#include "tests/checks/soak/round.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tests/checks/soak/supervisor.hpp"

namespace leasehold::soak {
namespace {

/// The next action runs after this time even without new tokens.
constexpr Duration kIdleTimeout = std::chrono::milliseconds(500);
constexpr std::uint64_t kActionsPerScan = 3;

class Round {
 public:
  Round(const Settings& settings, const Workload& workload, const demo::Poller& poller,
        const RoundPlan& plan)
      : plan_(plan),
        workload_(workload),
        random_(plan.seed),
        supervisor_(settings, workload, poller, plan.directory) {}

  Result<RoundResult> run() {
    while (counters_.kills() < plan_.kills && clock_.now() < plan_.until) {
      TRY(wait_for(next_action(random_)));
    }
    TRY(serve_all_tenants());
    TRY(settle());
    TRY(supervisor_.collect_event_logs());
    count();
    return RoundResult{counters_, judge(supervisor_.history()), failures()};
  }

 private:
  /// Waits for the action's number of tokens, then runs it.
  Result<void> wait_for(const ScriptAction& action) {
    const std::uint64_t wanted = supervisor_.tokens_received() + action.after_tokens;
    const TimePoint enough = clock_.now() + kIdleTimeout;
    do {
      TRY(supervisor_.poll(true));
    } while (supervisor_.tokens_received() < wanted && clock_.now() < enough);
    if (!act(action)) return {};
    ++counters_.actions[static_cast<std::size_t>(action.kind)];
    supervisor_.count_action();
    if (++actions_ % kActionsPerScan == 0) scan();
    return {};
  }

  /// Returns false if there is no target.
  bool act(const ScriptAction& action) {
    switch (action.kind) {
      case ScriptActionKind::RevokeLease:
        return to_lease(action, wire::LeaseScope::Tenant, false);
      case ScriptActionKind::DrainLease:
        return to_lease(action, wire::LeaseScope::Tenant, true);
      case ScriptActionKind::RevokeWeights:
        return to_lease(action, wire::LeaseScope::Engine, false);
      case ScriptActionKind::RevokeText:
        return to_lease(action, wire::LeaseScope::Shared, false);
      case ScriptActionKind::ReplaceWorker:
        return replace_worker(action);
      case ScriptActionKind::KillBrokerAndWorker:
        return kill_broker_and_worker(action);
      case ScriptActionKind::KillResuming:
      case ScriptActionKind::KillAdopting:
      case ScriptActionKind::KillTenant:
      case ScriptActionKind::KillWorker:
      case ScriptActionKind::KillBroker:
      case ScriptActionKind::StopTenant:
      case ScriptActionKind::StopWorker:
      case ScriptActionKind::StopBroker:
        break;
    }
    ProcessSlot* const slot = process_for(action);
    if (slot == nullptr || !slot->is_running()) return false;
    if (is_kill(action.kind)) {
      slot->kill();
      if (kills_successor(action.kind)) slot->kill_after(action.second_kill);
    } else {
      slot->stop(action.stop_actions);
    }
    return true;
  }

  /// The process to kill or stop. Returns a broker only if all workers are ready, because a worker
  /// that starts may attach to either broker.
  ProcessSlot* process_for(const ScriptAction& action) {
    auto& tenants = supervisor_.tenants();
    auto& workers = supervisor_.workers();
    switch (action.kind) {
      case ScriptActionKind::KillTenant:
      case ScriptActionKind::StopTenant:
        return &tenants[action.which % tenants.size()].process;
      case ScriptActionKind::KillResuming:
        return resumable_process(action.which);
      case ScriptActionKind::KillWorker:
      case ScriptActionKind::KillAdopting:
      case ScriptActionKind::StopWorker:
        return &workers[action.which % workers.size()].process;
      case ScriptActionKind::KillBroker:
      case ScriptActionKind::StopBroker:
        return supervisor_.all_workers_ready() ? &supervisor_.broker() : nullptr;
      case ScriptActionKind::RevokeLease:
      case ScriptActionKind::DrainLease:
      case ScriptActionKind::RevokeWeights:
      case ScriptActionKind::RevokeText:
      case ScriptActionKind::KillBrokerAndWorker:
      case ScriptActionKind::ReplaceWorker:
        return nullptr;
    }
    return nullptr;
  }

  static bool kills_successor(ScriptActionKind kind) {
    return kind == ScriptActionKind::KillResuming || kind == ScriptActionKind::KillAdopting;
  }

  ProcessSlot* resumable_process(std::uint64_t which) {
    std::vector<ProcessSlot*> found;
    for (TenantSlot& slot : supervisor_.tenants())
      if (slot.spec->is_resumable) found.push_back(&slot.process);
    return found.empty() ? nullptr : found[which % found.size()];
  }

  bool kill_broker_and_worker(const ScriptAction& action) {
    auto& workers = supervisor_.workers();
    ProcessSlot& worker = workers[action.which % workers.size()].process;
    if (!supervisor_.all_workers_ready() || !supervisor_.broker().is_running()) return false;
    supervisor_.broker().kill();
    if (worker.is_running()) worker.kill();
    return true;
  }

  /// A replaced worker gets no new lease, so it is killed, and its successor serves again.
  bool replace_worker(const ScriptAction& action) {
    auto& workers = supervisor_.workers();
    BrokerView* broker = supervisor_.view();
    if (broker == nullptr || workers.size() < 2 || !supervisor_.all_workers_ready()) return false;
    WorkerSlot& old = workers[action.which % workers.size()];
    const WorkerSlot& by = workers[(action.which + 1) % workers.size()];
    if (old.process.is_stopped() || by.process.is_stopped()) return false;
    if (!broker->command(wire::WorkerReplace{.worker = old.name, .by = by.name})) return false;
    old.process.kill_after(action.second_kill);
    return true;
  }

  bool to_lease(const ScriptAction& action, wire::LeaseScope scope, bool drain) {
    BrokerView* broker = supervisor_.view();
    auto leases = broker ? broker->leases() : fail(Errc::BrokerLost, "");
    if (!leases) return false;
    std::erase_if(*leases, [&](const wire::LeaseView& lease) {
      return lease.scope != scope || lease.state != LeaseState::Live;
    });
    if (leases->empty()) return false;
    const LeaseId lease = (*leases)[action.which % leases->size()].lease;
    constexpr std::int64_t kGrace_ms = 20;
    if (drain) {
      return broker->command(wire::LeaseDrain{.lease = lease, .grace_ms = kGrace_ms}).has_value();
    }
    return broker->command(wire::LeaseRevoke{.lease = lease}).has_value();
  }

  /// Searches for canaries. A search that fails because the broker died is repeated after later
  /// actions.
  void scan() {
    if (BrokerView* broker = supervisor_.view()) {
      (void)find_canaries(*broker, workload_.canaries, *supervisor_.history().canaries);
    }
  }

  /// Waits without further actions until every tenant has a complete answer.
  Result<void> serve_all_tenants() {
    supervisor_.resume_all();
    const auto& instances = supervisor_.history().tenants;
    const std::size_t first = instances.size();
    std::set<std::string> answered;
    const TimePoint deadline = clock_.now() + kSettleTimeout;
    for (std::size_t next = first; answered.size() < workload_.tenants.size();) {
      TRY(supervisor_.poll(true));
      for (; next < instances.size(); ++next) {
        if (instances[next].record.completed) answered.insert(instances[next].tenant);
      }
      if (clock_.now() > deadline) return timed_out("a tenant got no complete answer");
    }
    return collect_missing_samples(deadline);
  }

  /// Continues until the round has all samples that its judge requires.
  Result<void> collect_missing_samples(TimePoint deadline) {
    TimePoint next_revocation = clock_.now();
    while (const auto missing = missing_samples()) {
      TRY(supervisor_.poll(true));
      if (clock_.now() > deadline) return timed_out(*missing);
      if (text_ends(supervisor_.history().tenants) > 0 || clock_.now() < next_revocation) continue;
      next_revocation = clock_.now() + kIdleTimeout;
      (void)to_lease({.which = random_()}, wire::LeaseScope::Shared, false);
    }
    return {};
  }

  std::optional<std::string> missing_samples() {
    const History& history = supervisor_.history();
    const auto was_reclaimed = [](const demo::Revocation& revocation) {
      return revocation.reason == name(RevokeReason::PreemptedByPriority);
    };
    const auto lost_memory = [&](const TenantInstance& tenant) {
      return std::ranges::any_of(tenant.record.revocations, was_reclaimed);
    };
    if (history.swaps.value_or(0) == 0) return "no request was swapped";
    if (history.used_blocks->published == 0) return "no prompt used a published block";
    if (text_ends(history.tenants) == 0) return "no stream ended with a published text";
    if (std::ranges::none_of(history.tenants, lost_memory))
      return "no memory of the scavenger was reclaimed";
    return std::nullopt;
  }

  std::unexpected<Error> timed_out(const std::string& what) const {
    return fail(Errc::TimedOut, what + "; the logs are in " + plan_.directory.string());
  }

  Result<void> settle() {
    const TimePoint deadline = clock_.now() + kSettleTimeout;
    while (clock_.now() < deadline) {
      TRY(supervisor_.poll(false));
      if (supervisor_.publisher().is_idle()) end_published_texts();
      if (!unsettled()) return {};
    }
    return timed_out(unsettled().value_or("the system was not quiet in time"));
  }

  /// Revokes the leases of published texts, which hold memory until then.
  void end_published_texts() {
    BrokerView* broker = supervisor_.view();
    const auto leases = broker ? broker->leases() : fail(Errc::BrokerLost, "");
    if (!leases) return;
    for (const wire::LeaseView& lease : *leases) {
      if (lease.scope == wire::LeaseScope::Shared && lease.state == LeaseState::Live)
        (void)broker->command(wire::LeaseRevoke{.lease = lease.lease});
    }
  }

  /// Describes what has not ended yet. Returns nothing once all is quiet and free, and then stores
  /// that status for the judge.
  std::optional<std::string> unsettled() {
    for (const TenantSlot& slot : supervisor_.tenants())
      if (slot.process.has_process()) return slot.spec->name + " never ended";
    if (!supervisor_.tight_tenant().is_idle()) return "the tight tenant's requests never ended";
    BrokerView* broker = supervisor_.view();
    if (broker == nullptr) return "the broker cannot be reached";
    for (const WorkerSlot& slot : supervisor_.workers())
      if (!slot.ready) return slot.name + " never became ready";
    const auto status = broker->status();
    if (!status) return "the broker does not answer: " + status.error().detail;
    if (status->free_bytes != status->capacity_bytes) {
      return fmt::format("{} of {} bytes never became free",
                         status->capacity_bytes - status->free_bytes, status->capacity_bytes);
    }
    if (status->swap.free_bytes != status->swap.capacity_bytes) {
      return fmt::format("{} of {} bytes of swap never became free",
                         status->swap.capacity_bytes - status->swap.free_bytes,
                         status->swap.capacity_bytes);
    }
    supervisor_.history().last = *status;
    return std::nullopt;
  }

  void count() {
    const History& history = supervisor_.history();
    for (const BrokerInstance& instance : history.brokers)
      counters_.brokers += 1 + instance.restarts.size();
    for (const BrokerInstance& instance : history.brokers) count_events(instance);
    counters_.workers = history.workers.size();
    counters_.tenants = history.tenants.size();
    counters_.swaps = history.swaps.value_or(0);
    counters_.published_texts = history.publications;
    counters_.published_blocks = history.used_blocks->published;
    counters_.text_ends = text_ends(history.tenants);
    counters_.extents_read = history.canaries->extents_read;
    counters_.disturbed_texts = disturbed_texts(history.tenants);
    for (const TenantInstance& instance : history.tenants) {
      counters_.tokens += instance.record.tokens.size();
      counters_.answered += instance.record.completed ? 1 : 0;
      if (instance.record.failed) ++counters_.gave_up[instance.record.reported.back().why];
      counters_.leases += instance.record.leases.size();
      counters_.revoked_leases += instance.record.revocations.size();
    }
  }

  std::vector<std::string> failures() {
    std::vector<std::string> failures;
    for (const TenantInstance& instance : supervisor_.history().tenants)
      if (instance.record.failed)
        failures.push_back(instance.tenant + ": " + *instance.record.failed);
    return failures;
  }

  void count_events(const BrokerInstance& instance) {
    std::map<std::uint64_t, std::string> states;
    for (const events::StampedEvent& stamped : instance.events) {
      if (const auto* rebind = std::get_if<events::Rebind>(&stamped.event)) {
        ++counters_.rebinds;
        if (is_move(rebind->mode)) ++counters_.moves;
      }
      const auto* changed = std::get_if<events::LeaseStateChanged>(&stamped.event);
      if (changed != nullptr && is_reclaim(*changed)) ++counters_.reclaims;
      const auto* memory = std::get_if<events::RegionStateChanged>(&stamped.event);
      if (memory == nullptr || memory->kind != "extent") continue;
      const std::string before = std::exchange(states[memory->region], memory->state);
      if (before == "Retained" && memory->state == "Owned") ++counters_.adoptions;
    }
  }

  const RoundPlan& plan_;
  const Workload& workload_;
  SystemClock clock_;
  SeededRandom random_;
  Supervisor supervisor_;
  Counters counters_;
  std::uint64_t actions_ = 0;
};

}  // namespace

Result<RoundResult> run_round(const Settings& settings, const Workload& workload,
                              const demo::Poller& poller, const RoundPlan& plan) {
  return Round(settings, workload, poller, plan).run();
}

}  // namespace leasehold::soak
