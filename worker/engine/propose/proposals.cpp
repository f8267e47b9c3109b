#include "worker/engine/propose/proposals.hpp"

#include <algorithm>
#include <utility>

#include "common/machine/confined.hpp"

namespace leasehold {

void Proposals::make() {
  if (!proposer_) return;
  for (const auto& sequence : deps_.scheduler->running().all()) sequence->proposals.clear();
  proposer_->retain(deps_.scheduler->running().all());
  StepPlan plan = deps_.scheduler->proposals().plan();
  if (plan.parts.empty()) return;
  if (proposer_->leases().empty()) {
    make_for(plan, nullptr);
  } else {
    make_gated(std::move(plan));
  }
}

void Proposals::make_gated(StepPlan plan) {
  const TimePoint began = deps_.clock->now();
  deps_.running_requests->update(stop_slots_of(deps_.scheduler->running().all()));
  SequenceGates sequences(deps_.gates, std::move(plan), proposer_->leases());
  make_for(sequences.plan(), &sequences.gates());
  sequences.end_refused();
  deps_.scheduler->proposals().note_proposing(deps_.clock->now() - began);
}

void Proposals::make_for(const StepPlan& plan, const GateSet* gates) {
  const auto made = catch_request_errors([&]() -> Result<void> {
    proposer_->propose(plan.parts, limits_.most, gates);
    return {};
  });
  const auto is_unknown = [this](TokenId token) {
    return token < 0 || static_cast<std::uint32_t>(token) >= limits_.n_vocab;
  };
  for (const PlannedRows& part : plan.parts) {
    std::vector<TokenId>& proposals = part.sequence->proposals;
    if (!made) proposals.clear();
    // A token without an embedding has no row, so it and the proposals after it are dropped.
    proposals.erase(std::ranges::find_if(proposals, is_unknown), proposals.end());
  }
}

void Proposals::scrub() {
  if (!proposer_) return;
  proposer_->scrub();
  proposer_->retain(deps_.scheduler->running().all());
}

}  // namespace leasehold
