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
  /// Logs spill events, each with the count of its kind since the start.
  void log_spills(const std::vector<SpillEvent>& spills);

 private:
  std::array<std::uint64_t, SpillEvent::kKindCount> counts_{};  // by kind
};

}  // namespace leasehold
