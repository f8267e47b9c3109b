/// The watchers of engine steps, and the newest sample of each worker.
///
/// Not journaled: a watch ends with its connection. Bounded by the connections and the workers.
/// Threads: one.
#pragma once

#include <cstdint>
#include <map>

#include "broker/books/ids.hpp"
#include "ipc/control/messages/steps.hpp"

namespace leasehold {

struct StepSamples {
  std::map<ConnectionId, std::int64_t> watchers;  ///< The interval that each watcher wants, in ms.
  std::map<AttachmentId, wire::WorkerStep> newest;

  /// The shortest interval that a watcher wants; 0 if there is no watcher.
  std::int64_t interval_ms() const {
    std::int64_t shortest = 0;
    for (const auto& [connection, interval] : watchers) {
      if (shortest == 0 || interval < shortest) shortest = interval;
    }
    return shortest;
  }
};

}  // namespace leasehold
