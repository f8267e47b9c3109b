// The part of Engine that calls the proposer before a step is planned.
#include "common/machine/confined.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/gate_numbers.hpp"

namespace leasehold {

/// When the proposer cannot allocate memory, it proposes nothing.
void Engine::propose() {
  if (!proposer_) return;
  for (const auto& sequence : scheduler_.running()) sequence->proposals.clear();
  proposer_->retain(scheduler_.running());
  StepPlan plan = scheduler_.plan_proposals();
  if (plan.parts.empty()) return;
  if (proposer_->leases().empty()) {
    propose_for(plan, nullptr);
  } else {
    propose_gated(plan);
  }
}

/// The gate set holds all sequences for which proposals are made, so a request that is revoked or
/// stopped ends within one unit.
void Engine::propose_gated(StepPlan& plan) {
  const TimePoint began = deps_.clock->now();
  publish_running_requests();
  StepRefusals refusals(plan, *deps_.table, *deps_.clock, *deps_.observer);
  GateSet gates(next_gate_number(), deps_.running_requests->stops(), refusals);
  gates.add_engine_leases(proposer_->leases());
  add_gates(plan, gates);
  propose_for(plan, &gates);
  end_refused(plan, refusals);
  scheduler_.note_proposing(deps_.clock->now() - began);
}

void Engine::propose_for(const StepPlan& plan, const GateSet* gates) {
  const auto made = run_confined([&]() -> Result<void> {
    proposer_->propose(plan.parts, config_.limits.speculate, gates);
    return {};
  });
  const auto is_unknown = [this](TokenId token) {
    return token < 0 || static_cast<std::uint32_t>(token) >= config_.model.n_vocab;
  };
  for (const PlannedRows& part : plan.parts) {
    std::vector<TokenId>& proposals = part.sequence->proposals;
    if (!made) proposals.clear();
    // A token without an embedding has no row, so it and the proposals after it are dropped.
    proposals.erase(std::ranges::find_if(proposals, is_unknown), proposals.end());
  }
}

}  // namespace leasehold
