/// Writes events to the broker's log, with a limit per decision.
///
/// One decision may produce thousands of events with the same time stamp. The first 64 are logged,
/// and the others are only counted. Threads: one.
#pragma once

#include "ipc/control/events.hpp"

namespace leasehold {

class EventLogger {
 public:
  void log(const events::Event& event, TimePoint at);
  /// Logs a failure or a loss that EventLog::append returned.
  static void log_file(const Result<std::uint64_t>& lost_events);

 private:
  bool is_within_limit(TimePoint at);

  TimePoint decision_at_;  ///< Time stamp of the last decision.
  std::size_t count_ = 0;  ///< Number of its events.
};

}  // namespace leasehold
