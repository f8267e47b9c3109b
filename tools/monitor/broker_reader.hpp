/// Asks a broker for its state, at most once a second.
///
/// Threads: one.
#pragma once

#include <string>

#include "common/clock.hpp"
#include "tools/monitor/broker_metrics.hpp"

namespace leasehold::monitor {

class BrokerReader {
 public:
  BrokerReader(std::string socket, const Clock& clock)
      : socket_(std::move(socket)), clock_(&clock) {}

  /// The metrics as text: those of a moment ago, when they are less than a second old. Waits for at
  /// most a few seconds. Without an answer it is broker_is_down(), and the log says why, once.
  const std::string& read();

 private:
  Result<std::string> ask() const;

  std::string socket_;
  const Clock* clock_;
  std::string text_;
  TimePoint read_at_;
  bool is_down_ = false;
};

}  // namespace leasehold::monitor
