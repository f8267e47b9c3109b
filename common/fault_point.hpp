/// Named places where a test makes this very process die or stop.
///
/// `LEASEHOLD_FAULT="worker.commit.before_record:kill"` in the environment arms one point; actions
/// are `kill` (SIGKILL to itself), `stop` (SIGSTOP to itself) and, with `:N` appended, the action
/// happens at the N-th arrival (default 1). Unarmed, a point is one load of a pointer.
#pragma once

#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// Every fault point there is. A name here and no call of it is a defect the tidy test finds.
enum class FaultSite : unsigned char {
  BrokerJournalWritten,
  BrokerGrantDecided,
  BrokerGrantPublished,
  BrokerRevokePublished,
  BrokerFenceDecided,
  BrokerScrubbed,
  WorkerAttached,
  WorkerResumed,
  WorkerRedelivered,
  WorkerWeightsFilled,
  WorkerExtentsMapped,
  WorkerUnitPolled,
  WorkerCommitBeforeRecord,
  WorkerCommitAfterRecord,
  WorkerExtentsUnmapped,
  TenantLeaseAcquired,
  TenantRequestSubmitted,
  TenantTokenReceived,
};

inline constexpr int kFaultSiteCount = static_cast<int>(FaultSite::TenantTokenReceived) + 1;

/// "worker.commit.before_record" and the like.
std::string_view name(FaultSite site);

/// Reads LEASEHOLD_FAULT. BadRequest when it names no known point or action.
/// Call once, before other threads start.
Result<void> arm_fault_points_from_environment();

namespace detail {
extern bool fault_points_armed;
void reach_fault_point(FaultSite site);
}  // namespace detail

/// Does nothing unless a test armed this point.
inline void fault_point(FaultSite site) {
  if (detail::fault_points_armed) [[unlikely]]
    detail::reach_fault_point(site);
}

}  // namespace leasehold
