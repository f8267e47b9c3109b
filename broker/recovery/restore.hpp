/// The first half of recovery: turns journal rows into state, without decisions.
#pragma once

#include "broker/recovery/recovery.hpp"

namespace leasehold {

struct Restored {
  State state;
  std::vector<Recovered::Word> words;
  std::vector<LeaseId> never_sent;    ///< Leases in the journal whose word was never stored.
  std::vector<LeaseId> stale_words;   ///< Leases whose word in the table has an earlier state.
  std::vector<LeaseId> region_lost;   ///< Engine leases on a region that was not kept.
  std::vector<LeaseId> stale_leases;  ///< Leases whose slot in the table has a later generation.
  std::vector<ExtentId> dropped_extents;
  std::vector<RegionId> dropped_regions;
};

/// Drops all memory and regions if `machine_restarted`. Errors: as `recover`.
Result<Restored> restore(const journal::Image& image, const Facts& facts, BrokerConfig config,
                         bool machine_restarted);

}  // namespace leasehold
