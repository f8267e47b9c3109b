// Sampling of engine steps: workers sample while an operator watches.

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"

namespace leasehold {
namespace {

void send_interval(Decision& decision, AttachmentId worker) {
  decision.add(effect::SendSampling{worker, {.interval_ms = decision.state.steps.interval_ms()}});
}

/// A worker that is not ready gets the interval when it becomes ready.
void send_interval_to_all(Decision& decision) {
  for (const auto& [id, worker] : decision.state.workers.all()) {
    if (worker.state == WorkerState::Ready) send_interval(decision, id);
  }
}

Result<void> check_tenants(const State& state, const Worker& worker, const wire::WorkerStep& step) {
  for (const wire::TenantTokens& each : step.tenants) {
    if (state.leases.index().of(each.tenant).contains(worker.id)) continue;
    return fail(Errc::PermissionDenied,
                fmt::format("step {} names tenant {}, which has no lease on worker {}", step.step,
                            each.tenant.value, worker.name));
  }
  return {};
}

}  // namespace

void start_sampling(Decision& decision, const Worker& worker) {
  if (!decision.state.steps.watchers.empty()) send_interval(decision, worker.id);
}

void end_step_watch(Decision& decision, ConnectionId connection) {
  StepSamples& steps = decision.state.steps;
  const std::int64_t before = steps.interval_ms();
  if (steps.watchers.erase(connection) == 0) return;
  if (steps.watchers.empty()) steps.newest.clear();
  if (steps.interval_ms() != before) send_interval_to_all(decision);
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::StepWatch& watch) {
  StepSamples& steps = decision.state.steps;
  const std::int64_t before = steps.interval_ms();
  steps.watchers[caller.connection] = watch.interval_ms;
  if (steps.interval_ms() != before) send_interval_to_all(decision);
  return Answer{wire::Empty{}};
}

/// A report that arrives after the last watch has ended is dropped without an error.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerStep& step) {
  State& state = decision.state;
  const Worker* worker = state.workers.find_by_connection(caller.connection);
  if (worker == nullptr || worker->state != WorkerState::Ready) {
    return fail(Errc::PermissionDenied,
                "only a ready worker reports steps; call worker.ready first");
  }
  TRY(check_tenants(state, *worker, step));
  if (state.steps.watchers.empty()) return Answer{wire::Empty{}};
  wire::WorkerStep& newest = state.steps.newest[worker->id];
  newest = step;
  newest.at_boottime_ns = std::min(step.at_boottime_ns, decision.now.boottime_ns);
  return Answer{wire::Empty{}};
}

}  // namespace leasehold
