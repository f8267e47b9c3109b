/// Detects that the broker itself did not run, because it was stopped, starved of CPU, or
/// suspended.
///
/// The loop calls `poll` on every event and, unless it rests, at least every `kPollInterval`.
/// Threads: one.
#pragma once

#include <optional>
#include <utility>

#include "common/clock.hpp"

namespace leasehold {

class Pulse {
 public:
  /// How often a loop that waits for a timeout must call `poll`.
  static constexpr Duration kPollInterval = std::chrono::milliseconds(50);
  /// Ten missed polls. A shorter stall is not detected, so timeouts continue to run during it.
  static constexpr Duration kStallThreshold = 10 * kPollInterval;

  explicit Pulse(TimePoint now) : ran_at_(now) {}

  /// The time since the last poll, if it was a stall.
  std::optional<Duration> poll(TimePoint now) {
    const Duration gap = now - std::exchange(ran_at_, now);
    if (std::exchange(rests_, false)) return std::nullopt;
    return gap > kStallThreshold ? std::optional(gap) : std::nullopt;
  }

  /// Call it when no timeout runs: the time until the next poll then does not count as a stall.
  void rest() { rests_ = true; }

 private:
  TimePoint ran_at_;
  bool rests_ = false;
};

}  // namespace leasehold
