/// Waits for a time of the boot-time clock, or for a wake-up from another thread.
///
/// Lease deadlines use the boot-time clock, which advances while the machine sleeps. The clock of a
/// condition variable does not advance then, so it would report such a deadline late.
///
/// Threads: one waits, any may wake. Source: timerfd_create(2), eventfd(2).
#pragma once

#include <optional>

#include "common/clock.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Arms a timerfd of the boot-time clock to expire at `until`, or at once if that time has passed.
/// Without `until`, disarms the timerfd.
void arm_boottime_timerfd(int timer, std::optional<TimePoint> until);

class BoottimeTimer {
 public:
  /// Errors: SystemError.
  static Result<BoottimeTimer> create();

  /// Returns at `until`, after a wake-up since the last return, or spuriously. Returns true for a
  /// wake-up.
  bool wait_until(TimePoint until);
  void wake();

 private:
  BoottimeTimer(UniqueFd timer, UniqueFd wakeup_fd)
      : timer_(std::move(timer)), wakeup_fd_(std::move(wakeup_fd)) {}

  UniqueFd timer_;
  UniqueFd wakeup_fd_;
};

}  // namespace leasehold
