#include "tests/fault/fault_case.hpp"

#include <stdexcept>
#include <string_view>

namespace leasehold::testing {

const std::vector<FaultCase>& fault_cases() {
  using enum FaultSite;
  static const std::vector<FaultCase> kCases{
      // The broker journals the worker's attachment first; its ninth write is about a tenant.
      {.site = BrokerJournalWritten, .later = 9},
      // The first grant of a broker is for its first worker's weights; the third is a tenant's.
      {.site = BrokerGrantDecided, .later = 3},
      {.site = BrokerGrantPublished, .later = 3},
      {.site = BrokerRevokePublished, .later = 2},
      {.site = BrokerFenceDecided, .later = 2},
      {.site = BrokerScrubbed, .later = 2},
      {.site = WorkerAttached},
      {.site = WorkerWeightsFilled},  // published weights are shared, not filled again
      {.site = WorkerExtentsMapped, .later = 2},
      {.site = WorkerUnitPolled, .later = 500},
      {.site = WorkerCommitBeforeRecord, .later = 7},
      {.site = WorkerCommitAfterRecord, .later = 7},
      {.site = WorkerExtentsUnmapped, .later = 2},
      {.site = TenantLeaseAcquired, .later = 2},
      {.site = TenantRequestSubmitted, .later = 2},
      {.site = TenantTokenReceived, .later = 15},
  };
  return kCases;
}

const std::vector<FaultSite>& fault_points_of_other_tests() {
  using enum FaultSite;
  static const std::vector<FaultSite> kPoints{
      WorkerResumed,        WorkerRedelivered,  WorkerSpillRead,    CellBeatSent,
      CellBeatArrived,      CellPartAdmitted,   CellPartWritten,    CellKeysChecked,
      GatewayExpiryDecided, GatewayHostExpired, GatewayMoveDecided, GatewaySuccessorRuns,
      GatewayAnswerReady};
  return kPoints;
}

Program program_of(FaultSite site) {
  const std::string_view point = name(site);
  if (point.starts_with("broker.")) return Program::Broker;
  if (point.starts_with("worker.")) return Program::Worker;
  if (point.starts_with("tenant.")) return Program::Tenant;
  throw std::runtime_error("no program reaches " + std::string(point));
}

std::string text(const Fault& fault) {
  return std::string(name(fault.site)) + (fault.action == Action::Kill ? ":kill:" : ":stop:") +
         std::to_string(fault.arrival);
}

std::vector<Fault> faults(Program program, Action action) {
  std::vector<Fault> all;
  for (const FaultCase& known : fault_cases()) {
    if (program_of(known.site) != program) continue;
    all.push_back({known.site, action, 1});
    if (known.later > 0) all.push_back({known.site, action, known.later});
  }
  return all;
}

}  // namespace leasehold::testing
