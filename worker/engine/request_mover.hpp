/// Moves a running request to another live lease of its tenant, between two steps.
///
/// The blocks are copied in units that poll both leases, and a move is all or nothing: after an
/// error the request continues under its present lease, unless that lease has ended. The copies
/// read no weights, so they can be made while weights are being restored.
///
/// Threads: one (the engine's).
#pragma once

#include <vector>

#include "kernels/backend.hpp"
#include "worker/engine/leases/lease_checks.hpp"
#include "worker/engine/leases/leased_records.hpp"
#include "worker/engine/move_pauses.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class RequestMover {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Scheduler* scheduler = nullptr;
    const LeaseChecks* leases = nullptr;
    const LeaseMemory* memory = nullptr;
    LeasedRecords* records = nullptr;
    RunningRequests* running_requests = nullptr;
    Backend* backend = nullptr;
    const TableReader* table = nullptr;
    const Clock* clock = nullptr;
    RevocationObserver* observer = nullptr;
  };
  explicit RequestMover(const Dependencies& dependencies) : deps_(dependencies) {}

  /// Returns the number of copied blocks. `called_at` is the time of the client's call. Errors:
  /// those of Scheduler::begin_move, QueueFull with the time until the tenant's copies have taken
  /// less than a twentieth of the time, LeaseRevoked, LeaseFenced, Draining (the new lease),
  /// LeaseRevoked (the old one), Draining (the request is being stopped), the device's fault.
  Result<std::uint32_t> move(const RequestId& engine_request_id, LeaseId to, TimePoint called_at);

 private:
  Result<void> copy_blocks(const Move& move);
  Result<std::vector<LeasedCopy>> addresses_of(const Move& move) const;

  Dependencies deps_;
  MovePauses pauses_;
};

}  // namespace leasehold
