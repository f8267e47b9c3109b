/// Turns each refusal of a gate into the typed end of the request, on the thread that observed it.
#pragma once

#include <optional>
#include <vector>

#include "ipc/control/events.hpp"
#include "ipc/segment/gate_set.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/schedule/events.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// Receives refusals as soon as a gate observes them. In the worker program, RevocationReporter
/// passes them to the tenants' server and the broker.
/// Threads: any gate thread calls it, within a unit; it must be quick and must not throw.
class RevocationObserver {
 public:
  virtual ~RevocationObserver() = default;
  /// A request has ended; `what` says where the forward pass was.
  virtual void completed_early(const Completed& completed, const events::ForwardRevoked& what,
                               TimePoint at) noexcept = 0;
  /// A lease was found revoked: during a step a lease of the weights, or between two steps a
  /// tenant's lease, whose requests end with the next report.
  virtual void lease_found_revoked(const events::ForwardRevoked& what, TimePoint at) noexcept = 0;
  /// A unit that reported a refusal has ended, so the broker can check again whether the gates are
  /// quiet.
  virtual void refusing_unit_ended() noexcept = 0;
};

/// The listener of one step's gate set.
///
/// Lifetime: sequences, table and observer outlive it. Threads: `refused` from any gate thread, at
/// most once per sequence; the rest from the engine thread once the launches are over.
class StepRefusals final : public RefusalListener {
 public:
  StepRefusals(const StepPlan& plan, const TableReader& table, const Clock& clock,
               RevocationObserver& observer);

  void refused(const GateRefusal& refusal) noexcept override;
  void refusing_unit_ended() noexcept override { observer_->refusing_unit_ended(); }

  /// The completion already reported for sequence `index`; nothing when it was not refused.
  const std::optional<Completed>& completion(std::uint32_t index) const {
    return completions_[index];
  }

 private:
  void sequence_refused(const GateRefusal& refusal);
  events::ForwardRevoked describe(const GateRefusal& refusal, TimePoint now) const;

  const StepPlan* plan_;
  const TableReader* table_;
  const Clock* clock_;
  RevocationObserver* observer_;
  // one per part of the plan, written by the one thread that reports its refusal
  std::vector<std::optional<Completed>> completions_;
};

/// The listener for units outside the steps. It reports no refusal: the lease's next unit in a
/// step, or the end of the lease before that step, reports it.
class UnreportedRefusals final : public RefusalListener {
 public:
  explicit UnreportedRefusals(RevocationObserver& observer) : observer_(&observer) {}
  void refused(const GateRefusal&) noexcept override {}
  void refusing_unit_ended() noexcept override { observer_->refusing_unit_ended(); }

 private:
  RevocationObserver* observer_;
};

/// The end of a request that this process stopped. Precondition: `local` is not None.
Completed stopped_by(LocalStop local, LeaseId lease);

/// The end of a request that a gate refused, because a lease word that the request depends on has
/// changed or because this process stopped the request.
Completed completion_of(const Sequence& sequence, const GateRefusal& refusal);

}  // namespace leasehold
