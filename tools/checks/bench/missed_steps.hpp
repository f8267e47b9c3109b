/// Counts the steps of a worker in which a running text had no row. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ipc/control/events.hpp"

namespace leasehold::bench {

struct MissedSteps {
  /// Longest distance between two steps with a row of the text; 1 if it missed none.
  std::uint64_t longest_gap = 0;
  std::uint64_t missed = 0;
  std::uint64_t taken = 0;  ///< Steps with a row of the text.
};

/// Counts over the steps from the first to the last one with a row of one of these leases. A worker
/// runs a step only if some text has a row, so another text must run meanwhile.
MissedSteps missed_steps(std::span<const events::StampedEvent> steps,
                         const std::vector<LeaseId>& leases);

}  // namespace leasehold::bench
