/// The first half of recovery: rows become books again, as they stood; nothing is decided yet.
#pragma once

#include "broker/recovery/recovery.hpp"

namespace leasehold {

struct Restored {
  State state;
  std::vector<Recovered::Word> words;
  std::vector<LeaseId> never_sent;    ///< Journaled, but their word was never stored.
  std::vector<LeaseId> stale_words;   ///< The table has their generation in an earlier state.
  std::vector<LeaseId> region_lost;   ///< Live or Revoked engine leases of a region not kept.
  std::vector<LeaseId> stale_leases;  ///< The slot has moved on since they were written.
  std::vector<ExtentId> dropped_extents;
  std::vector<RegionId> dropped_regions;
};

/// Errors: as `recover`. `machine_restarted`: memory and regions of before do not exist any more.
Result<Restored> restore(const journal::Image& image, const Facts& facts, BrokerConfig config,
                         bool machine_restarted);

}  // namespace leasehold
