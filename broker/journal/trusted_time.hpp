/// The time by which records age: the machine's clock, as long as it does not jump.
///
/// A clock that is wrong for one start of the broker would otherwise remove all records. Between
/// two looks of one process, the time since boot says how far the clock may advance; nothing says
/// how long a broker was stopped, so a step up to `longest_step` is trusted. After a longer one the
/// time goes on with the time since boot alone, until the clock agrees with it again or an operator
/// says that it is right. Pure. Threads: any, one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"

namespace leasehold::journal {

class TrustedTime {
 public:
  /// `last_unix_ms`: the time of the last look of an earlier process; nothing: the clock is right.
  TrustedTime(std::optional<std::int64_t> last_unix_ms, Duration longest_step)
      : unix_ms_(last_unix_ms), longest_step_(longest_step) {}

  /// Looks at the machine's clock.
  void look(std::int64_t clock_unix_ms, TimePoint now);

  /// Precondition of both: `look` was called.
  std::int64_t unix_ms() const { return *unix_ms_; }
  /// How far the clock was ahead at the last look; below 0: behind; 0: it is trusted.
  std::int64_t ahead_ms() const { return ahead_ms_; }

 private:
  std::optional<std::int64_t> unix_ms_;
  std::optional<TimePoint> looked_at_;
  Duration longest_step_;
  std::int64_t ahead_ms_ = 0;
};

}  // namespace leasehold::journal
