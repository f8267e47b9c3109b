// A worker that reports lost weights is out of service until it reports that it has them again.
#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/worker/worker_sleep.hpp"

namespace leasehold {
namespace {

/// Revokes the leases of tenants, of published texts and of adapters: KV memory of published texts
/// must not outlive the weights it was computed with. Engine leases stay, because the worker keeps
/// trying to restore its weights.
void revoke_served_leases(Decision& decision, AttachmentId worker) {
  const auto served = open_leases_where(decision.state, [worker](const LeaseRecord& record) {
    return record.worker() == worker && record.scope != wire::LeaseScope::Engine;
  });
  revoke_leases(decision, served, RevokeReason::WeightsLost);
}

}  // namespace

void decide_event(Decision& decision, const WeightsReported& reported) {
  Worker* worker = decision.state.workers.find_by_connection(reported.connection);
  if (worker == nullptr || worker->state != WorkerState::Ready) return;
  note_weights(decision, *worker, reported.weights);
  const auto& missing = reported.weights.missing;
  if (worker->out_of_service == missing) return;
  worker->out_of_service = missing;
  decision.record(events::WorkerService{.worker = worker->name,
                                        .state = missing ? "out_of_service" : "in_service",
                                        .reason = missing.value_or("")});
  if (missing) return revoke_served_leases(decision, worker->id);
  decision.waits_may_end = true;
}

}  // namespace leasehold
