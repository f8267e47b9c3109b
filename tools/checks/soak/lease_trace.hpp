/// What a broker's events say of each lease, put together. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/checks/soak/history.hpp"

namespace leasehold::soak {

struct LeaseTrace {
  std::string tenant;  ///< Empty for engine leases.
  std::optional<TimePoint> granted, revoked, fenced;
  RevokeReason reason = RevokeReason::None;
  std::string proof;
};

struct LeaseTraces {
  std::map<LeaseId, LeaseTrace> leases;
  std::vector<std::string> wrong;  ///< Turns no lease may take, in words.
};

LeaseTraces lease_traces(const BrokerInstance& instance);

/// The instance in which the tenant got this lease at that time: the latest that tells of it.
/// Nothing when none does.
std::optional<std::size_t> instance_of(const std::vector<LeaseTraces>& instances, LeaseId lease,
                                       const std::string& tenant, TimePoint acquired_at);

}  // namespace leasehold::soak
