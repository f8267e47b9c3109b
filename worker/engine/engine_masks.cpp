// The part of Engine that computes the masks of grammars before a step is planned.
#include <fmt/format.h>

#include "common/machine/confined.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/gate_numbers.hpp"
#include "worker/engine/token_rules.hpp"

namespace leasehold {

/// Runs one unit per slice. The gate set holds all running sequences, so a request that is revoked
/// or stopped ends within one slice, whichever sequence's mask is being computed.
Result<void> Engine::prepare_masks(StepReport& report) {
  if (!mark_awaiting_masks()) return {};
  publish_running_requests();
  StepPlan plan;
  for (const auto& sequence : scheduler_.running())
    plan.parts.push_back({.sequence = sequence.get()});
  StepRefusals refusals(plan, *deps_.table, *deps_.clock, *deps_.observer);
  GateSet gates(next_gate_number(), deps_.running_requests->stops(), refusals);
  gates.add_engine_leases(weights_->leases());
  add_gates(plan, gates);
  const PartErrors errors = run_mask_turns(plan, gates, report);
  if (gates.engine_refused()) {
    end_refused(plan, refusals);
    return fail(Errc::EngineDecodeFailed,
                fmt::format("no step ran: {}", check_weights().error().detail));
  }
  for (const auto& [part, error] : errors) {
    if (refusals.completion(part)) continue;
    scheduler_.end_sequence(*plan.parts[part].sequence,
                            {.reason = CompletionReason::EngineError, .error = error});
  }
  end_refused(plan, refusals);
  report.awaits_masks = mark_awaiting_masks();
  return {};
}

/// Marks the sequences that cannot draw a token yet. Returns true when there is one.
bool Engine::mark_awaiting_masks() {
  bool any = false;
  for (const auto& sequence : scheduler_.running()) {
    if (!sequence->rules) {
      sequence->rules = std::make_shared<TokenRules>(sequence->request, *deps_.tokenizer,
                                                     config_.masks.token_units);
    }
    sequence->awaits_mask = !can_draw(*sequence);
    any = any || sequence->awaits_mask;
  }
  return any;
}

/// True when the mask is ready, or when none is needed because the sequence is full and ends
/// without a draw.
bool Engine::can_draw(const Sequence& sequence) const {
  const TokenRules& rules = *sequence.rules;
  return rules.is_ready() || (rules.has_accepted_emitted() && scheduler_.capacity_end(sequence));
}

/// Drops the parts whose lease is unknown, and ends their sequences.
void Engine::add_gates(StepPlan& plan, GateSet& gates) {
  std::erase_if(plan.parts, [&](const PlannedRows& part) {
    const auto leases = dependencies_of(*part.sequence, *deps_.table);
    if (leases) gates.add_sequence(*leases, part.sequence->stop_slot);
    if (!leases) end_without_lease(*part.sequence, leases.error());
    return !leases;
  });
}

MaskTurns Engine::mask_turns(const StepPlan& plan) const {
  std::size_t nodes = 0;
  std::set<TenantId> tenants;
  for (const PlannedRows& part : plan.parts) {
    const PromptRequest& request = part.sequence->request;
    tenants.insert(request.tenant);
    if (request.constraint)
      nodes = std::max(nodes, request.constraint.vocabulary->pieces.node_count());
  }
  MaskTurns turns(MaskTurns::limits_for(config_.masks, nodes, tenants.size()), last_mask_tenant_);
  for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
    const Sequence& sequence = *plan.parts[i].sequence;
    if (sequence.awaits_mask) turns.add(i, sequence.request.tenant, sequence.rules->spent());
  }
  return turns;
}

Engine::PartErrors Engine::run_mask_turns(const StepPlan& plan, const GateSet& gates,
                                          StepReport& report) {
  PartErrors errors;
  MaskTurns turns = mask_turns(plan);
  while (const auto turn = turns.next()) {
    const Sequence& sequence = *plan.parts[turn->sequence].sequence;
    WorkBudget slice{turn->units};
    bool is_over = true;  // a sequence that is not live does no more work
    const auto prepare = [&](const LaunchPermit& permit) {
      if (!permit.is_live(turn->sequence)) return;
      const Result<void> prepared = run_confined([&] { return sequence.rules->prepare(slice); });
      if (!prepared) errors.emplace(turn->sequence, prepared.error());
      is_over = !prepared || can_draw(sequence);
    };
    deps_.engine_gate->run(gates, {LaunchSite::Sampling, 0, Touches::Nothing}, prepare);
    turns.record(turn->sequence, slice.spent, is_over);
  }
  report.mask_units = turns.spent();
  last_mask_tenant_ = turns.last();
  return errors;
}

}  // namespace leasehold
