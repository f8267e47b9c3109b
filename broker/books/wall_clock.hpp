/// Converts between boot time and the machine's clock. Expiries and days of UTC are times of that
/// clock, and every deadline is a boot time.
///
/// The offset changes only when the clock is set, and the server reports that as ClockSet. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "common/clock.hpp"

namespace leasehold {

struct WallClock {
  Duration offset{};  ///< Unix time minus boot time.

  std::int64_t unix_ms(TimePoint now) const {
    return std::chrono::floor<std::chrono::milliseconds>(Duration(now.boottime_ns) + offset)
        .count();
  }
  /// Days since 1970.
  std::int64_t day(TimePoint now) const {
    return std::chrono::floor<std::chrono::days>(Duration(now.boottime_ns) + offset).count();
  }
  /// The boot time at which the clock will show `unix_ms`, unless it is set before.
  TimePoint at(std::int64_t unix_ms) const {
    return {(Duration(std::chrono::milliseconds(unix_ms)) - offset).count()};
  }
  TimePoint day_end(TimePoint now) const { return at((day(now) + 1) * 86'400'000); }
};

}  // namespace leasehold
