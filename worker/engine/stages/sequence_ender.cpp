#include "worker/engine/stages/sequence_ender.hpp"

#include "worker/engine/propose/proposals.hpp"
#include "worker/engine/stages/model_runner.hpp"

namespace leasehold {

void SequenceEnder::end_revoked_leases(std::vector<LeaseId> adapters) {
  std::vector<LeaseId> leases = deps_.scheduler->tenancies().ids();
  std::erase_if(adapters, [this](LeaseId adapter) {
    return !deps_.leases->completion_for(adapter) || !deps_.scheduler->has_users(adapter);
  });
  leases.insert(leases.end(), adapters.begin(), adapters.end());
  for (const LeaseId lease : leases) {
    const std::optional<Completed> end = deps_.leases->completion_for(lease);
    if (!end) continue;
    deps_.leases->report_found_revoked(lease);
    end_lease(lease, *end);
  }
}

void SequenceEnder::end_stopped() {
  std::vector<Sequence*> stopped;
  for (const auto& sequence : deps_.scheduler->running().all()) {
    const LocalStop stop = deps_.stops->read(sequence->stop_slot);
    if (stop != LocalStop::None) stopped.push_back(sequence.get());
  }
  for (Sequence* sequence : stopped) {
    const LocalStop stop = deps_.stops->read(sequence->stop_slot);
    deps_.scheduler->end_sequence(*sequence, completion_of(*sequence, {.local = stop}));
  }
  if (!stopped.empty()) scrub();
}

void SequenceEnder::end_lease(LeaseId lease, const Completed& how) {
  deps_.scheduler->end_lease(lease, how);
  scrub();
}

void SequenceEnder::end_without_lease(Sequence& sequence, const Error& error) {
  std::optional<Completed> end;
  for (const SequenceLease& each : sequence.leases()) {
    end = deps_.leases->completion_for(each.lease);
    if (!end) continue;
    if (end->revocation) end->revocation->scope = each.scope;
    deps_.leases->report_found_revoked(each.lease);
    break;
  }
  deps_.scheduler->end_sequence(
      sequence, end.value_or(Completed{.reason = CompletionReason::EngineError, .error = error}));
  scrub();
}

void SequenceEnder::end_refused(const StepPlan& plan, const StepRefusals& refusals) {
  for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
    if (!refusals.completion(i)) continue;
    deps_.scheduler->end_sequence(*plan.parts[i].sequence, *refusals.completion(i), true);
    scrub();
  }
}

Result<void> SequenceEnder::cancel(const RequestId& engine_request_id) {
  const std::size_t running = deps_.scheduler->running().size();
  TRY(deps_.scheduler->cancel(engine_request_id));
  // A waiting request has no intermediate values.
  if (deps_.scheduler->running().size() < running) scrub();
  return {};
}

void SequenceEnder::scrub() {
  deps_.runner->scrub();
  deps_.proposals->scrub();
}

}  // namespace leasehold
