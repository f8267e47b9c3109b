/// Reads the words, deadlines and drain deadlines of tenants' leases, and decides what each lease
/// permits now.
///
/// Invariant: `take_drained` returns a drained lease once, until `repeat_drained`.
///
/// Threads: one (the engine's).
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <vector>

#include "common/clock.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/engine/lease_expiry.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class LeaseChecks {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    const TableReader* table = nullptr;
    const Clock* clock = nullptr;
    RevocationObserver* observer = nullptr;
    /// True while the broker is disconnected and cannot renew a lease.
    const std::atomic<bool>* broker_disconnected = nullptr;
  };
  explicit LeaseChecks(const Dependencies& dependencies) : deps_(dependencies) {}

  /// How requests of this lease end now; nothing while the lease is usable.
  std::optional<Completed> completion_for(LeaseId lease) const;
  /// The end of a request whose lease was revoked, with the reason in the lease word.
  Completed revocation_of(LeaseId lease) const;
  /// Checks that a request or a move may begin under the lease. Errors: LeaseFenced, LeaseRevoked,
  /// Draining, BrokerLost.
  Result<void> check_usable(LeaseId lease) const;
  /// Reports to the observer that the lease was found revoked between two steps. Does nothing when
  /// the lease is expired but not revoked.
  void report_found_revoked(LeaseId lease) const;

  /// Stops the running requests whose deadline, or whose lease's, has passed at `now`.
  void stop_due(RunningRequests& running_requests, TimePoint now) const;

  /// The draining leases under which no request runs or waits, without those returned before.
  std::vector<LeaseId> take_drained(const Tenancies& tenancies);
  void repeat_drained() { drained_.clear(); }

 private:
  LeaseExpiry expiry_of(LeaseId lease) const;
  bool is_draining(LeaseId lease) const;

  Dependencies deps_;
  std::set<LeaseId> drained_;  // at the last `take_drained`
};

}  // namespace leasehold
