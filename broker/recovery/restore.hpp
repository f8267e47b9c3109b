/// The first half of recovery: turns rows into state and decides nothing.
#pragma once

#include "broker/recovery/recovery.hpp"

namespace leasehold {

struct Restored {
  State state;
  std::vector<Recovered::Word> words;
  std::vector<LeaseId> never_sent;    ///< Journaled, but the word was never stored.
  std::vector<LeaseId> stale_words;   ///< The table has an earlier state of this generation.
  std::vector<LeaseId> region_lost;   ///< Engine leases on a region that was not kept.
  std::vector<LeaseId> stale_leases;  ///< The slot has a later generation.
  std::vector<ExtentId> dropped_extents;
  std::vector<RegionId> dropped_regions;
};

/// `machine_restarted`: drops all memory and regions. Errors: as `recover`.
Result<Restored> restore(const journal::Image& image, const Facts& facts, BrokerConfig config,
                         bool machine_restarted);

}  // namespace leasehold
