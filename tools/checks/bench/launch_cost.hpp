/// Measures what a launch of the CPU backend's thread pool costs besides its work.
#pragma once

#include <cstdint>

#include "common/result.hpp"
#include "tools/checks/bench/statistics.hpp"

namespace leasehold::bench {

struct LaunchCost {
  Distribution empty_us;  ///< A launch of one empty tile per thread.
  /// The time of a launch with one tile of equal work per thread, minus the time of the work: the
  /// cost of joining the threads at the end.
  Distribution meeting_us;
};

/// Measures wall-clock times of `launches` launches of each kind in alternation, on this thread and
/// `threads` - 1 others. Errors: SystemError if the system has no more threads.
Result<LaunchCost> measure_launch(std::uint32_t threads, std::uint32_t launches);

}  // namespace leasehold::bench
