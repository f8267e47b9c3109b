/// Named places where a test makes this process die or stop.
///
/// `LEASEHOLD_FAULT="worker.commit.before_record:kill"` in the environment arms one point. Actions:
/// `kill` (SIGKILL to itself) and `stop` (SIGSTOP to itself). With `:N` appended, the action
/// happens at the N-th arrival (default 1). An unarmed point costs one load of a bool.
#pragma once

#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// The closed list of fault points. The tidy test finds names that no code calls.
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
  WorkerSpillRead,
  TenantLeaseAcquired,
  TenantRequestSubmitted,
  TenantTokenReceived,
  CellBeatSent,
  CellBeatArrived,
  CellPartAdmitted,
  CellPartWritten,
  CellKeysChecked,
  GatewayExpiryDecided,
  GatewayHostExpired,
  GatewayMoveDecided,
  GatewaySuccessorRuns,
  GatewayAnswerReady,
};

inline constexpr int kFaultSiteCount = static_cast<int>(FaultSite::GatewayAnswerReady) + 1;

/// The name in LEASEHOLD_FAULT: "worker.commit.before_record".
std::string_view name(FaultSite site);

/// Reads LEASEHOLD_FAULT. Call it once, before other threads start. Errors: BadRequest for an
/// unknown point or action.
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
