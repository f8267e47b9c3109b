/// Notices that the broker itself did not run: stopped, starved, or asleep with its machine.
///
/// It is told the time whenever the loop turns, at least every `kPollInterval`. Threads: one.
#pragma once

#include <optional>
#include <utility>

#include "common/clock.hpp"

namespace leasehold {

class Pulse {
 public:
  /// How often a loop with nothing to do has to turn.
  static constexpr Duration kPollInterval = std::chrono::milliseconds(50);
  /// Ten beats missed. Whoever chose a shorter timeout has chosen that a pause of the broker
  /// counts.
  static constexpr Duration kStallThreshold = 10 * kPollInterval;

  explicit Pulse(TimePoint now) : ran_at_(now) {}

  /// For how long it stood, when it did since the last poll.
  std::optional<Duration> poll(TimePoint now) {
    const Duration gap = now - std::exchange(ran_at_, now);
    return gap > kStallThreshold ? std::optional(gap) : std::nullopt;
  }

 private:
  TimePoint ran_at_;
};

}  // namespace leasehold
