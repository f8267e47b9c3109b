/// Asks a broker for its state, at most once a second.
///
/// Threads: one.
#pragma once

#include <string>

#include "common/metrics/recent.hpp"
#include "tools/monitor/broker_metrics.hpp"

namespace leasehold::monitor {

class BrokerReader {
 public:
  BrokerReader(std::string socket, const Clock& clock)
      : socket_(std::move(socket)), text_(clock, [this] { return make(); }) {}
  BrokerReader(const BrokerReader&) = delete;  // text_ calls this one

  /// The metrics as text: those of a moment ago, when they are less than a second old. Waits for at
  /// most 5 s to connect and 2 s for each of two calls. Without an answer it is broker_is_down(),
  /// and the log says why, once.
  const std::string& read() { return text_.read(); }

 private:
  Result<std::string> ask() const;
  std::string make();

  std::string socket_;
  metrics::Recent<std::string> text_;
  bool is_down_ = false;
};

}  // namespace leasehold::monitor
