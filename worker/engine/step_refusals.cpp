#include "worker/engine/step_refusals.hpp"

#include <fmt/format.h>

namespace leasehold {
Completed stopped_by(LocalStop local, LeaseId lease) {
  switch (local) {
    case LocalStop::Cancelled:
      return {.reason = CompletionReason::Cancelled};
    case LocalStop::DeadlineExceeded:
      return {.reason = CompletionReason::DeadlineExceeded};
    case LocalStop::LeaseExpired:
      return {.reason = CompletionReason::Revoked,
              .revocation = RevocationInfo{
                  .lease = lease, .reason = RevokeReason::TtlExpired, .is_local = true}};
    case LocalStop::BrokerLost:
    case LocalStop::None:
      break;
  }
  return {.reason = CompletionReason::EngineError,
          .error = Error{Errc::BrokerLost,
                         fmt::format("the broker is lost and lease {} expired; acquire a new lease "
                                     "once the broker is back",
                                     to_string(lease)),
                         FailureScope::Tenant}};  // other leases continue until their own deadlines
}

Completed completion_of(const Sequence& sequence, const GateRefusal& refusal) {
  Completed completed;
  if (refusal.local != LocalStop::None) {
    completed = stopped_by(refusal.local, sequence.request.lease);
  } else {
    const LeaseWord seen = refusal.seen;
    const LeaseId lease{refusal.slot, refusal.granted.generation()};
    const bool same_generation = seen.generation() == lease.generation;
    // The slot has a newer generation: this lease is fenced, and its reason is overwritten.
    completed = {
        .reason = same_generation ? CompletionReason::Revoked : CompletionReason::LeaseFenced,
        .revocation = RevocationInfo{lease, same_generation ? seen.reason() : RevokeReason::None,
                                     sequence.scope_of(lease).value_or(FailureScope::Tenant)}};
  }
  completed.engine_request_id = sequence.request.engine_request_id;
  completed.emitted_tokens = sequence.emitted();
  completed.cached_tokens = sequence.request.cached;
  return completed;
}

StepRefusals::StepRefusals(const StepPlan& plan, const TableReader& table, const Clock& clock,
                           RevocationObserver& observer)
    : plan_(&plan),
      table_(&table),
      clock_(&clock),
      observer_(&observer),
      completions_(plan.parts.size()) {}

void StepRefusals::refused(const GateRefusal& refusal) noexcept {
  if (refusal.sequence != GateRefusal::kEngine) return sequence_refused(refusal);
  const TimePoint now = clock_->now();
  observer_->lease_found_revoked(describe(refusal, now), now);
}

void StepRefusals::sequence_refused(const GateRefusal& refusal) {
  const TimePoint now = clock_->now();
  const Sequence& sequence = *plan_->parts[refusal.sequence].sequence;
  const Completed& completion =
      completions_[refusal.sequence].emplace(completion_of(sequence, refusal));
  observer_->completed_early(completion, describe(refusal, now), now);
}

events::ForwardRevoked StepRefusals::describe(const GateRefusal& refusal, TimePoint now) const {
  events::ForwardRevoked what{.lease = {refusal.slot, refusal.granted.generation()},
                              .kernel_site = refusal.site,
                              .layer = refusal.layer};
  if (refusal.sequence != GateRefusal::kEngine) {
    const Sequence& sequence = *plan_->parts[refusal.sequence].sequence;
    what.kv_position = sequence.blocks.committed();
    if (refusal.local != LocalStop::None) what.lease = sequence.request.lease;
  }
  if (refusal.local == LocalStop::None)
    what.since_flip_ns =
        table_->since_word_stored(what.lease, now).value_or(Duration::zero()).count();
  return what;
}

}  // namespace leasehold
