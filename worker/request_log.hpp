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
};

}  // namespace leasehold
