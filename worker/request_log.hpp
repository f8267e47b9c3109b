/// The worker's log about requests.
///
/// Threads: the engine's.
#pragma once

#include <array>
#include <vector>

#include "worker/schedule/events.hpp"

namespace leasehold {

class RequestLog {
 public:
  /// What happens to a request for a cause outside it.
  static void log_events(const std::vector<SchedulerEvent>& events);
  /// Blocks that went to the spill file and back, with the counts since the start.
  void log_spills(const std::vector<SpillEvent>& spills);

 private:
  std::array<std::uint64_t, SpillEvent::kKindCount> counts_{};  // by kind
};

}  // namespace leasehold
