/// A wait until a moment of the boot-time clock, or until somebody rings.
///
/// Deadlines of leases are on that clock, which goes on while the machine sleeps. A condition
/// variable's does not: what ran out meanwhile would be noticed late by what was left to wait.
///
/// Threads: one waits, any may wake. Source: timerfd_create(2), eventfd(2).
#pragma once

#include <optional>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "common/unique_fd.hpp"

namespace leasehold {

/// Lets a timerfd of that clock wake at `until`, at once when it has passed; without one, never.
void arm_boottime_timerfd(int timer, std::optional<TimePoint> until);

class BoottimeTimer {
 public:
  /// Errors: SystemError.
  static Result<BoottimeTimer> create();

  /// Returns at `until`, or when somebody has rung since the last return, at times sooner. True
  /// when somebody has rung.
  bool wait_until(TimePoint until);
  void wake();

 private:
  BoottimeTimer(UniqueFd timer, UniqueFd wakeup_fd)
      : timer_(std::move(timer)), wakeup_fd_(std::move(wakeup_fd)) {}

  UniqueFd timer_;
  UniqueFd wakeup_fd_;
};

}  // namespace leasehold
