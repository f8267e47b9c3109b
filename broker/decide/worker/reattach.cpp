// Handles workers that resume after a broker restart, and workers that do not.
#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "broker/decide/worker/liveness.hpp"

namespace leasehold {
namespace {

/// True if the caller is the worker's process, as the kernel reports it, and the reattach grace has
/// not ended.
bool may_resume(const Worker& worker, const Caller& caller, const std::string& name) {
  return worker.state == WorkerState::Lost && !worker.killed &&
         worker.reattach_until != TimePoint{} && worker.pid == caller.pid &&
         worker.uid == caller.uid && worker.name == name;
}

std::vector<ExtentId> not_delivered(const State& state, const LeaseRecord& record) {
  std::vector<ExtentId> missing;
  std::ranges::copy_if(record.extents, std::back_inserter(missing),
                       [&](ExtentId extent) { return state.extents.find(extent)->unavailable; });
  return missing;
}

bool is_unfilled(const LeaseRecord& record) {
  switch (record.scope) {
    case wire::LeaseScope::Shared:
      return record.charged_blocks == 0;
    case wire::LeaseScope::Adapter:
      return !record.filled;
    case wire::LeaseScope::Engine:
    case wire::LeaseScope::Tenant:
      return false;
  }
  return false;
}

/// If no extent was redelivered, the grant never reached the worker, and the lease ends. If some
/// extents were redelivered, the missing ones belong to a growth that never reached the worker. An
/// adapter does not grow: it needs all of its extents.
void reconcile_live(Decision& decision, LeaseRecord& record) {
  if (record.scope == wire::LeaseScope::Engine)
    return;                   // weights are not redelivered: the broker has their descriptors
  if (is_unfilled(record)) {  // the call that waited for the fill ended with the broker
    revoke_leases(decision, std::vector{record.id()}, RevokeReason::Released);
    return;
  }
  const std::vector<ExtentId> missing = not_delivered(decision.state, record);
  const bool needs_all = record.scope == wire::LeaseScope::Adapter;
  if (!missing.empty() && (needs_all || missing.size() == record.extents.size())) {
    revoke_leases(decision, std::vector{record.id()}, RevokeReason::Released);
  } else {
    std::vector<ExtentId> owned;
    std::ranges::copy_if(missing, std::back_inserter(owned), [&](ExtentId extent) {
      return decision.state.extents.find(extent)->state == ExtentState::Owned;
    });
    if (owned.empty()) return;
    scrub_returned(decision, record, owned);
    recharge(decision, record);
  }
}

/// The broker may have ended right after the fence, so this punches the extents and sends the unmap
/// again.
void reconcile_fenced(Decision& decision, const LeaseRecord& record) {
  punch_extents(decision, record.extents);
  decision.add(effect::SendUnmap{record.worker(), record.id()});
}

}  // namespace

CallResult resume_worker(Decision& decision, const Caller& caller,
                         const wire::WorkerAttach& attach) {
  Worker* worker = decision.state.workers.find(*attach.resume);
  if (worker == nullptr || !may_resume(*worker, caller, attach.worker)) {
    return fail(Errc::BrokerLost,
                fmt::format("attachment {} cannot be resumed: the lease table is a new one, or the "
                            "reattach grace is over; let the leases run out, then attach anew",
                            attach.resume->value));
  }
  move(*worker, WorkerState::Attached);
  worker->connection = caller.connection;
  worker->socket_open = true;
  worker->reattach_until = TimePoint{};
  worker->timeouts_from = decision.now;
  worker->resuming = true;
  worker->delivered_at = decision.now;
  start_liveness_probes(decision, *worker);
  decision.touch(worker->id);
  decision.add(effect::ResumeWorker{worker->id, caller.connection});
  return Answer{wire::WorkerAttached{.worker = worker->index,
                                     .attachment = worker->id,
                                     .slot_count = decision.state.config.slot_count,
                                     .token_key = to_hex(worker->token_key),
                                     .resumed = true,
                                     .device = decision.state.config.device,
                                     .device_uuid = decision.state.config.device_uuid,
                                     .protocol = wire::kWorkerProtocol}};
}

Result<void> check_redelivery(State& state, ConnectionId connection,
                              const wire::LeaseRedeliver& redeliver) {
  const Worker* worker = state.workers.find_by_connection(connection);
  if (worker == nullptr || !worker->resuming) {
    return fail(Errc::PermissionDenied, "redeliver memory only between a resume and worker.ready");
  }
  const LeaseRecord& record = *TRY(state.leases.find(redeliver.lease));
  for (const ExtentId extent : redeliver.extents) {
    const bool listed = std::ranges::find(record.extents, extent) != record.extents.end();
    if (record.worker() == worker->id && listed) continue;
    return fail(Errc::UnknownLease,
                fmt::format("extent {} of lease {} was not granted to this worker", extent.value,
                            to_string(redeliver.lease)));
  }
  return {};
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::LeaseRedeliver& redeliver) {
  TRY(check_redelivery(decision.state, caller.connection, redeliver));
  for (const ExtentId extent : redeliver.extents) decision.state.extents.mark_available(extent);
  decision.state.workers.find_by_connection(caller.connection)->delivered_at = decision.now;
  return Answer{};
}

void reconcile_resumed(Decision& decision, Worker& worker) {
  worker.resuming = false;
  const auto leases = decision.state.leases.leases_on(worker.id);
  for (const LeaseId id : leases) {
    LeaseRecord& record = decision.state.leases.at(id);
    record.may_be_mapping = false;  // a worker maps its grants before it is ready again
    if (record.is(LeaseState::Live)) reconcile_live(decision, record);
    if (record.is(LeaseState::Fenced)) reconcile_fenced(decision, record);
  }
}

void expire_grace(Decision& decision) {
  for (const auto& [id, waiting] : decision.state.workers.all()) {
    const bool over =
        waiting.reattach_until != TimePoint{} && waiting.reattach_until <= decision.now;
    if (!over) continue;
    Worker& worker = *decision.state.workers.find(id);
    worker.reattach_until = TimePoint{};
    worker.timeouts_from = decision.now;
    decision.warn(fmt::format("worker did not resume after the broker restart worker={} pid={}",
                              worker.name, worker.pid));
    mark_worker_lost(decision, worker);
  }
}

}  // namespace leasehold
