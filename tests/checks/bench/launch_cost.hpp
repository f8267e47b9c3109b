/// The cost of a launch of the CPU backend's thread pool besides its work.
#pragma once

#include <cstdint>

#include "common/result.hpp"
#include "tests/checks/bench/statistics.hpp"

namespace leasehold::bench {

struct LaunchCost {
  Distribution empty_us;  ///< A launch of one empty tile per thread.
  /// A launch of one tile of equal work per thread, minus the work: the cost of meeting at its end.
  Distribution meeting_us;
};

/// Wall-clock times of `launches` launches of each kind in turn, on this thread and `threads` - 1
/// others. Errors: SystemError if the system has no more threads.
Result<LaunchCost> measure_launch(std::uint32_t threads, std::uint32_t launches);

}  // namespace leasehold::bench
