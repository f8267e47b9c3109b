#include "worker/engine/stages/mask_preparation.hpp"

#include <algorithm>
#include <set>

#include "common/machine/confined.hpp"

namespace leasehold {

Result<MaskPreparation::Work> MaskPreparation::prepare() {
  if (!mark_awaiting()) return Work{};
  deps_.running_requests->update(stop_slots_of(deps_.scheduler->running().all()));
  SequenceGates sequences(deps_.gates, all_running(*deps_.scheduler), deps_.weights->leases());
  MaskSchedule turns = turns_for(sequences.plan());
  const PartErrors errors = run_turns(sequences, turns);
  last_tenant_ = turns.last();
  if (sequences.gates().engine_refused()) {
    sequences.end_refused();
    return deps_.weights->step_failed("no step ran");
  }
  for (const auto& [part, error] : errors) {
    if (sequences.is_refused(part)) continue;
    deps_.scheduler->end_sequence(*sequences.plan().parts[part].sequence,
                                  {.reason = CompletionReason::EngineError, .error = error});
  }
  sequences.end_refused();
  return Work{.units = turns.spent(), .awaits_masks = mark_awaiting()};
}

/// Marks the sequences that cannot draw a token yet. Returns true when there is one.
bool MaskPreparation::mark_awaiting() {
  bool any = false;
  for (const auto& sequence : deps_.scheduler->running().all()) {
    if (!sequence->rules) {
      sequence->rules =
          std::make_shared<TokenRules>(sequence->request, *deps_.tokenizer,
                                       drawable_ ? &*drawable_ : nullptr, limits_.token_units);
    }
    sequence->awaits_mask = !can_draw(*sequence);
    any = any || sequence->awaits_mask;
  }
  return any;
}

/// True when the mask is ready, or when none is needed because the sequence is full and ends
/// without a draw.
bool MaskPreparation::can_draw(const Sequence& sequence) const {
  const TokenRules& rules = *sequence.rules;
  return rules.is_ready() ||
         (rules.has_accepted_emitted() && deps_.scheduler->fit().capacity_end(sequence));
}

MaskSchedule MaskPreparation::turns_for(const StepPlan& plan) const {
  std::size_t nodes = 0;
  std::set<TenantId> tenants;
  for (const PlannedRows& part : plan.parts) {
    const PromptRequest& request = part.sequence->request;
    tenants.insert(request.tenant);
    if (request.constraint)
      nodes = std::max(nodes, request.constraint.vocabulary->pieces.node_count());
  }
  MaskSchedule turns(MaskSchedule::limits_for(limits_, nodes, tenants.size()), last_tenant_);
  for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
    const Sequence& sequence = *plan.parts[i].sequence;
    if (sequence.awaits_mask) turns.add(i, sequence.request.tenant, sequence.rules->spent());
  }
  return turns;
}

/// Runs one unit per slice.
MaskPreparation::PartErrors MaskPreparation::run_turns(const SequenceGates& sequences,
                                                       MaskSchedule& turns) {
  PartErrors errors;
  while (const auto turn = turns.next()) {
    const Sequence& sequence = *sequences.plan().parts[turn->sequence].sequence;
    WorkBudget slice{turn->units};
    bool is_over = true;  // a sequence that is not live does no more work
    const auto prepare = [&](const LaunchPermit& permit) {
      if (!permit.is_live(turn->sequence)) return;
      const Result<void> prepared =
          catch_request_errors([&] { return sequence.rules->prepare(slice); });
      if (!prepared) errors.emplace(turn->sequence, prepared.error());
      is_over = !prepared || can_draw(sequence);
    };
    deps_.gate->run(sequences.gates(), {LaunchSite::Sampling, 0, Touches::Nothing}, prepare);
    turns.record(turn->sequence, slice.spent, is_over);
  }
  return errors;
}

}  // namespace leasehold
