/// The time from which the age of records is computed: the machine's clock, unless it jumps.
///
/// Otherwise a clock that is wrong during one run of the broker would cause all records to be
/// removed. Between two readings in one process, the time since boot shows how far the clock should
/// advance. How long a broker was stopped is unknown, so a step of up to `longest_step` is trusted.
/// After a longer step, the trusted time advances with the time since boot alone, until the clock
/// agrees with it again or an operator confirms that the clock is right. Pure. Threads: any, one at
/// a time.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"

namespace leasehold::journal {

class TrustedTime {
 public:
  /// `last_unix_ms`: the last trusted time of an earlier process; nothing: trust the clock.
  TrustedTime(std::optional<std::int64_t> last_unix_ms, Duration longest_step)
      : unix_ms_(last_unix_ms), longest_step_(longest_step) {}

  /// Takes a reading of the machine's clock.
  void look(std::int64_t clock_unix_ms, TimePoint now);

  /// Precondition of both: `look` was called.
  std::int64_t unix_ms() const { return *unix_ms_; }
  /// How far the clock was ahead of the trusted time at the last reading. Negative: behind. 0: the
  /// clock is trusted.
  std::int64_t ahead_ms() const { return ahead_ms_; }

 private:
  std::optional<std::int64_t> unix_ms_;
  std::optional<TimePoint> looked_at_;
  Duration longest_step_;
  std::int64_t ahead_ms_ = 0;
};

}  // namespace leasehold::journal
