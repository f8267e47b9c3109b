#include "tests/checks/runner/script_runner.hpp"

#include <algorithm>

namespace leasehold::runner {
namespace {

constexpr std::int64_t kDrainGrace_ms = 20;

/// One live lease of this scope and worker; nothing if there is none.
Result<std::optional<LeaseId>> choose_lease(System& system, wire::LeaseScope scope,
                                            std::uint64_t which, const std::string& worker) {
  BrokerView* const broker = system.view();
  auto leases = broker ? broker->leases() : fail(Errc::BrokerLost, "the broker does not answer");
  if (!leases && system.config().restarts_broker) return std::nullopt;
  if (!leases) return std::unexpected(leases.error());
  std::erase_if(*leases, [&](const wire::LeaseView& lease) {
    return lease.scope != scope || lease.state != LeaseState::Live ||
           (!worker.empty() && lease.worker != worker);
  });
  if (leases->empty()) return std::nullopt;
  return (*leases)[which % leases->size()].lease;
}

}  // namespace

Result<bool> revoke_lease(System& system, wire::LeaseScope scope, std::uint64_t which,
                          const std::string& worker) {
  const auto lease = TRY(choose_lease(system, scope, which, worker));
  BrokerView* const broker = system.view();
  // A command that fails came after the end of the lease or of the broker.
  return lease && broker != nullptr &&
         broker->command(wire::LeaseRevoke{.lease = *lease}).has_value();
}

Result<bool> ScriptRunner::run_next() {
  const ScriptAction action = next_action(script_, random_);
  const std::uint64_t wanted = system_.tokens_received() + action.after_tokens;
  const TimePoint enough = system_.clock().now() + kIdleTimeout;
  do {
    TRY(system_.poll(Starts::Tenants));
  } while (system_.tokens_received() < wanted && system_.clock().now() < enough);
  if (!TRY(act(action))) return false;
  ++system_.record().actions[static_cast<std::size_t>(action.kind)];
  system_.count_action();
  return true;
}

Result<bool> ScriptRunner::act(const ScriptAction& action) {
  auto& workers = system_.workers();
  switch (action.kind) {
    case ActionKind::RevokeLease:
      return revoke_lease(system_, wire::LeaseScope::Tenant, action.which);
    case ActionKind::RevokeAdapter:
      return revoke_lease(system_, wire::LeaseScope::Adapter, action.which);
    case ActionKind::RevokeText:
      return revoke_lease(system_, wire::LeaseScope::Shared, action.which);
    case ActionKind::RevokeWeights:
      return revoke_lease(system_, wire::LeaseScope::Engine, action.which);
    case ActionKind::DrainLease:
      return drain(action);
    case ActionKind::ReplaceWorker:
      return replace_worker(action);
    case ActionKind::SleepWorker:
      return sleep_worker(action);
    case ActionKind::KillBrokerAndWorker:
      return kill_broker_and_worker(action);
    case ActionKind::KillTenant:
    case ActionKind::KillResuming:
    case ActionKind::StopTenant:
      return kill_or_stop(action, tenant_process(action));
    case ActionKind::KillWorker:
    case ActionKind::KillAdopting:
    case ActionKind::StopWorker:
      return kill_or_stop(action, &workers[action.which % workers.size()].process);
    case ActionKind::KillBroker:
    case ActionKind::StopBroker:
      // A worker that starts may attach to either broker.
      return kill_or_stop(action, system_.all_workers_ready() ? &system_.broker() : nullptr);
    default:
      return false;  // of another script
  }
}

bool ScriptRunner::kill_or_stop(const ScriptAction& action, ProcessSlot* process) {
  if (process == nullptr || !process->is_running()) return false;
  if (!is_kill(action.kind)) {
    process->stop(action.stop_actions);
    return true;
  }
  process->kill();
  if (action.kind == ActionKind::KillResuming || action.kind == ActionKind::KillAdopting)
    process->kill_after(action.second_kill);
  return true;
}

ProcessSlot* ScriptRunner::tenant_process(const ScriptAction& action) {
  std::vector<ProcessSlot*> found;
  for (Tenant& tenant : system_.tenants())
    if (action.kind != ActionKind::KillResuming || tenant.spec.is_resumable)
      found.push_back(&tenant.process);
  return found.empty() ? nullptr : found[action.which % found.size()];
}

bool ScriptRunner::kill_broker_and_worker(const ScriptAction& action) {
  auto& workers = system_.workers();
  ProcessSlot& worker = workers[action.which % workers.size()].process;
  if (!system_.all_workers_ready() || !system_.broker().is_running()) return false;
  system_.broker().kill();
  if (worker.is_running()) worker.kill();
  return true;
}

/// A replaced worker gets no new lease, so it is killed, and its successor serves again.
bool ScriptRunner::replace_worker(const ScriptAction& action) {
  auto& workers = system_.workers();
  BrokerView* broker = system_.view();
  if (broker == nullptr || workers.size() < 2 || !system_.all_workers_ready()) return false;
  Worker& old = workers[action.which % workers.size()];
  const Worker& by = workers[(action.which + 1) % workers.size()];
  if (old.process.is_stopped() || by.process.is_stopped()) return false;
  if (!broker->command(wire::WorkerReplace{.worker = old.name, .by = by.name})) return false;
  old.process.kill_after(action.second_kill);
  return true;
}

/// The wake may cross the revocation. Nothing else wakes a worker whose tenants only wait.
bool ScriptRunner::sleep_worker(const ScriptAction& action) {
  auto& workers = system_.workers();
  BrokerView* broker = system_.view();
  if (broker == nullptr || !system_.all_workers_ready()) return false;
  const std::string& name = workers[action.which % workers.size()].name;
  if (!broker->command(wire::WorkerSleep{.worker = name})) return false;
  return broker->command(wire::WorkerWake{.worker = name}).has_value();
}

Result<bool> ScriptRunner::drain(const ScriptAction& action) {
  const auto lease = TRY(choose_lease(system_, wire::LeaseScope::Tenant, action.which, ""));
  BrokerView* const broker = system_.view();
  return lease && broker != nullptr &&
         broker->command(wire::LeaseDrain{.lease = *lease, .grace_ms = kDrainGrace_ms}).has_value();
}

}  // namespace leasehold::runner
