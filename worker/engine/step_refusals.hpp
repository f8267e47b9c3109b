/// Turns a refusal, on the thread that saw it, into the request's typed end.
#pragma once

#include <optional>
#include <vector>

#include "ipc/control/events.hpp"
#include "ipc/segment/gate_set.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/schedule/events.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// Hears of refusals the moment they are seen.
/// Threads: called from any gate thread, within a unit; must be quick and must not throw.
class RevocationObserver {
 public:
  virtual ~RevocationObserver() = default;
  /// The request is over; `what` says where the forward pass was.
  virtual void completed_early(const Completed& completed, const events::ForwardRevoked& what,
                               TimePoint at) noexcept = 0;
  /// The engine's own lease was refused.
  virtual void engine_refused(const events::ForwardRevoked& what, TimePoint at) noexcept = 0;
  /// A tenant's lease was found taken back between two steps; its requests end with the next
  /// report.
  virtual void lease_found_revoked(const events::ForwardRevoked& what, TimePoint at) noexcept = 0;
  /// A unit that refused something is over: the broker may look again.
  virtual void quiet_progress() noexcept = 0;
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
  void quiet_progress() noexcept override { observer_->quiet_progress(); }

  /// How sequence `index` ended and was told; nothing when it was not refused.
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
  // [parts]; each written by the one thread that reports it
  std::vector<std::optional<Completed>> completions_;
};

/// How requests of a lease end that this process stopped by itself. Precondition: not None.
Completed stopped_by(LocalStop local, LeaseId lease);

/// How a request ends whose lease's word reads `seen`, or that was stopped by this process.
Completed completion_of(const Sequence& sequence, LeaseWord seen, LocalStop local);

}  // namespace leasehold
