/// Counts the steps of a worker in which a running text had no row. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ipc/control/events.hpp"

namespace leasehold::bench {

struct MissedSteps {
  std::uint64_t longest_gap = 0;  ///< From one of the text's steps to the next; 1: none missed.
  std::uint64_t missed = 0;
  std::uint64_t taken = 0;  ///< Steps with a row of the text.
};

/// Counts from the first to the last step that has a row of one of these leases. A step is missed
/// only if it ran for other texts, so another text must run meanwhile.
MissedSteps missed_steps(std::span<const events::StampedEvent> steps,
                         const std::vector<LeaseId>& leases);

}  // namespace leasehold::bench
