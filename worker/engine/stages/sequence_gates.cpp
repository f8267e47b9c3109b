#include "worker/engine/stages/sequence_gates.hpp"

#include <utility>

#include "worker/engine/gate_numbers.hpp"
#include "worker/engine/step_batch.hpp"

namespace leasehold {

StepPlan all_running(const Scheduler& scheduler) {
  StepPlan plan;
  for (const auto& sequence : scheduler.running().all())
    plan.parts.push_back({.sequence = sequence.get()});
  return plan;
}

SequenceGates::SequenceGates(const Dependencies& dependencies, StepPlan sequences,
                             std::span<const LeaseDependency> engine_leases)
    : ender_(dependencies.ender),
      plan_(std::move(sequences)),
      refusals_(plan_, *dependencies.table, *dependencies.clock, *dependencies.observer),
      gates_(next_gate_number(), *dependencies.stops, refusals_) {
  gates_.add_engine_leases(engine_leases);
  std::erase_if(plan_.parts, [&](const PlannedRows& part) {
    const auto leases = dependencies_of(*part.sequence, *dependencies.table);
    if (leases) gates_.add_sequence(*leases, part.sequence->stop_slot);
    if (!leases) ender_->end_without_lease(*part.sequence, leases.error());
    return !leases;
  });
}

}  // namespace leasehold
