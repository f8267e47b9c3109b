/// The trace of each lease in a broker's events, and the groups of checks that `judge` runs on
/// them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/checks/runner/check.hpp"

namespace leasehold::runner {

struct LeaseTrace {
  std::string tenant;  ///< Empty for engine leases.
  std::optional<TimePoint> granted, revoked, fenced;
  RevokeReason reason = RevokeReason::None;
};

struct LeaseTraces {
  std::map<LeaseId, LeaseTrace> leases;
  std::vector<std::string> wrong;  ///< Descriptions of impossible transitions.
};

/// A record and the lease traces of its brokers.
struct Case {
  const Record& record;
  std::vector<LeaseTraces> instances;  ///< One per broker.

  /// Index of the latest instance that granted this lease to the tenant before `acquired_at`;
  /// nothing if no instance did.
  std::optional<std::size_t> instance_of(LeaseId lease, const std::string& tenant,
                                         TimePoint acquired_at) const;
};

/// Leases go Live → Revoked → Fenced with proof; no row of a step runs under a fenced lease.
void judge_leases(const Case& all, std::vector<Check>& checks);

/// Live holders get one typed error per revocation; processes end once; texts are correct.
void judge_holders(const Case& all, std::vector<Check>& checks);

/// Readers of a published text or an adapter get the right end; a guaranteed tenant gets memory
/// from a scavenger. Adds no checks without these tenants.
void judge_sharing(const Case& all, std::vector<Check>& checks);

/// Checks extents, sums of bytes, and canaries.
void judge_memory(const Case& all, std::vector<Check>& checks);

}  // namespace leasehold::runner
