/// The gate set of units that run for a list of sequences before the forward pass. It holds every
/// sequence of the list, so a request that is revoked or stopped ends within one unit, whichever
/// sequence the unit works for.
///
/// Invariant: part i of `plan` is sequence i of the gate set. The plan does not change after
/// construction.
///
/// Not movable: its members point to each other. Threads: one (the engine's), except that any gate
/// thread may report a refusal.
#pragma once

#include "ipc/table/table_reader.hpp"
#include "worker/engine/stages/sequence_ender.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// A part without rows for each running sequence.
StepPlan all_running(const Scheduler& scheduler);

class SequenceGates {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    const TableReader* table = nullptr;
    const Clock* clock = nullptr;
    RevocationObserver* observer = nullptr;
    const StopFlags* stops = nullptr;
    SequenceEnder* ender = nullptr;
  };
  /// Every unit also depends on `engine_leases`. Ends the sequences whose lease is unknown, and
  /// leaves them out of the plan.
  SequenceGates(const Dependencies& dependencies, StepPlan sequences,
                std::span<const LeaseDependency> engine_leases);
  SequenceGates(const SequenceGates&) = delete;
  SequenceGates& operator=(const SequenceGates&) = delete;

  const StepPlan& plan() const { return plan_; }
  const GateSet& gates() const { return gates_; }

  /// Precondition, also of `end_refused`: no unit runs.
  bool is_refused(std::uint32_t part) const { return refusals_.completion(part).has_value(); }
  /// Ends the sequences that a unit was refused for.
  void end_refused() { ender_->end_refused(plan_, refusals_); }

 private:
  SequenceEnder* ender_;
  StepPlan plan_;
  StepRefusals refusals_;
  GateSet gates_;
};

}  // namespace leasehold
