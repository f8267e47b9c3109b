/// Ends sequences that were revoked, stopped or cancelled, and those of leases that ended.
///
/// Invariant: when a running sequence ends in one of these ways, all intermediate values of the
/// model and of the proposer are cleared before the function returns.
///
/// Threads: one (the engine's).
#pragma once

#include <vector>

#include "worker/engine/leases/lease_checks.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class ModelRunner;
class Proposals;

class SequenceEnder {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Scheduler* scheduler = nullptr;
    const LeaseChecks* leases = nullptr;
    const StopFlags* stops = nullptr;
    ModelRunner* runner = nullptr;
    Proposals* proposals = nullptr;
  };
  explicit SequenceEnder(const Dependencies& dependencies) : deps_(dependencies) {}

  /// Ends the requests of each lease that is revoked or past its deadline, and those that use an
  /// adapter under such a lease. The memory stays mapped until the broker asks to unmap it.
  void end_revoked_leases(std::vector<LeaseId> adapters);
  /// Ends the running sequences whose stop flag is set.
  void end_stopped();
  /// Calls Scheduler::end_lease.
  void end_lease(LeaseId lease, const Completed& how);
  /// Ends a sequence whose lease has no memory or no word here. The broker may have revoked, fenced
  /// and unmapped the lease since it was last read. Otherwise `error` ends the sequence.
  void end_without_lease(Sequence& sequence, const Error& error);
  /// Ends the sequences of the plan that a gate refused. Their requests were already notified, even
  /// if the step failed.
  void end_refused(const StepPlan& plan, const StepRefusals& refusals);
  /// Errors: those of Scheduler::cancel.
  Result<void> cancel(const RequestId& engine_request_id);

 private:
  void scrub();

  Dependencies deps_;
};

}  // namespace leasehold
