#include "broker/decide/worker/worker_sleep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

bool serves_tenants(const State& state, AttachmentId worker) {
  return std::ranges::any_of(state.leases.index().of(worker).open, [&state](LeaseId id) {
    const LeaseRecord& record = *state.leases.find_open(id);
    return record.scope == wire::LeaseScope::Tenant && record.is(LeaseState::Live);
  });
}

/// The worker of this name, if the broker can send its process a message.
Result<Worker*> find_connected(State& state, const std::string& name) {
  if (state.stopping) return std::unexpected(broker_stopping());
  Worker* worker = TRY(find_worker(state, name));
  if (worker->resuming) return std::unexpected(worker_reconnecting(name));
  return worker;
}

/// A worker that drains needs its weights until its last request has ended.
Result<void> check_may_sleep(const State& state, const Worker& worker) {
  if (worker.state != WorkerState::Ready) {
    return fail(
        Errc::NoModelLoaded,
        fmt::format("worker {} has not loaded its model yet; retry once it is ready", worker.name));
  }
  if (worker.out_of_service)
    return std::unexpected(worker_out_of_service(worker.name, *worker.out_of_service));
  if (!worker.can_sleep) {
    return fail(Errc::BadRequest,
                fmt::format("worker {} cannot sleep: it has a draft model, which it does not "
                            "restore, or is of an earlier version; stop it instead",
                            worker.name));
  }
  if (worker.stopping) return std::unexpected(worker_stopping(worker.name));
  if (worker.is_admitting() || !serves_tenants(state, worker.id)) return {};
  return std::unexpected(
      Error{Errc::Draining,
            fmt::format("worker {} is {} and still has leases of tenants; retry when they have "
                        "ended, or `brokerctl undrain --worker {}` first",
                        worker.name, worker.draining ? "draining" : "being replaced", worker.name),
            FailureScope::Engine});
}

void record_service(Decision& decision, const Worker& worker, std::string state, std::string why) {
  decision.record(events::WorkerService{
      .worker = worker.name, .state = std::move(state), .reason = std::move(why)});
}

void begin_waking(Decision& decision, Worker& worker) {
  worker.sleep = SleepState::Waking;
  record_service(decision, worker, "waking", "");
}

Result<Worker*> ready_caller(State& state, const Caller& caller) {
  Worker* worker = state.workers.find_by_connection(caller.connection);
  if (worker != nullptr && worker->state == WorkerState::Ready) return worker;
  return fail(Errc::PermissionDenied, "call worker.ready first");
}

}  // namespace

std::vector<LeaseId> put_to_sleep(Decision& decision, Worker& worker, std::string why) {
  worker.sleep = SleepState::Asleep;
  record_service(decision, worker, "asleep", std::move(why));
  decision.add(effect::SendAsleep{worker.id, {.asleep = true}});
  const auto engine = open_leases_where(decision.state, [&worker](const LeaseRecord& record) {
    return record.worker() == worker.id && record.scope == wire::LeaseScope::Engine;
  });
  return revoke_leases(decision, engine, RevokeReason::WorkerAsleep);
}

void note_weights(Decision& decision, Worker& worker, const wire::WorkerWeights& weights) {
  if (weights.asleep && worker.sleep != SleepState::Asleep) {
    put_to_sleep(decision, worker, "reported by the worker");
  } else if (weights.missing) {
    worker.sleep = SleepState::Awake;
  } else if (!weights.asleep && worker.sleep == SleepState::Waking) {
    worker.sleep = SleepState::Awake;
    record_service(decision, worker, "in_service", "");
  }
}

/// A worker that wakes opens the same region again, so that one is retained.
bool gives_weights_back(const State& state, const LeaseRecord& record) {
  const Worker* worker = state.workers.find(record.worker());
  return reason_of(record.lease) == RevokeReason::WorkerAsleep &&
         (worker == nullptr || worker->sleep != SleepState::Waking);
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerSleep& sleep) {
  Worker& worker = *TRY(find_connected(decision.state, sleep.worker));
  if (worker.sleep == SleepState::Asleep) return Answer{wire::LeasesTouched{}};
  TRY(check_may_sleep(decision.state, worker));
  record_operator_action(decision,
                         {.uid = caller.uid, .action = "sleep", .object = "worker:" + worker.name});
  return Answer{wire::LeasesTouched{.leases = put_to_sleep(decision, worker, "operator")}};
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerWake& wake_up) {
  Worker& worker = *TRY(find_connected(decision.state, wake_up.worker));
  if (worker.sleep != SleepState::Asleep) return Answer{wire::Empty{}};
  record_operator_action(decision,
                         {.uid = caller.uid, .action = "wake", .object = "worker:" + worker.name});
  begin_waking(decision, worker);
  decision.add(effect::SendAsleep{worker.id, {.asleep = false}});
  return Answer{wire::Empty{}};
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::WeightsSleep& sleep) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  Worker& worker = *TRY(ready_caller(state, caller));
  if (worker.sleep == SleepState::Asleep) return Answer{wire::Empty{}};
  TRY(check_may_sleep(state, worker));
  put_to_sleep(decision, worker, sleep.why.value_or("idle"));
  return Answer{wire::Empty{}};
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::WeightsWake&) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  Worker& worker = *TRY(ready_caller(state, caller));
  if (worker.sleep == SleepState::Asleep) begin_waking(decision, worker);
  return Answer{wire::Empty{}};
}

}  // namespace leasehold
