/// Builds the trace of each lease from a broker's events. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/checks/soak/history.hpp"

namespace leasehold::soak {

struct LeaseTrace {
  std::string tenant;  ///< Empty for engine leases.
  std::optional<TimePoint> granted, revoked, fenced;
  RevokeReason reason = RevokeReason::None;
};

struct LeaseTraces {
  std::map<LeaseId, LeaseTrace> leases;
  std::vector<std::string> wrong;  ///< Descriptions of impossible transitions.
};

LeaseTraces lease_traces(const BrokerInstance& instance);

/// Index of the latest instance that granted this lease to the tenant before `acquired_at`; nothing
/// when there is none.
std::optional<std::size_t> instance_of(const std::vector<LeaseTraces>& instances, LeaseId lease,
                                       const std::string& tenant, TimePoint acquired_at);

}  // namespace leasehold::soak
