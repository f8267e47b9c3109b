/// Decides when the broker's loop wakes up although no event arrives. Without a reason the loop
/// sleeps.
///
///   reason                          every
///   a process may write the table   50 ms   compare the table with the broker's copy
///   a timeout of a worker runs      50 ms   notice that the broker itself did not run (pulse.hpp)
///   connections have checks to do   50 ms   close silent ones, log what the limits did
///   the status changed              1 s     STATUS=, only under a service manager
///   the watchdog                    a third of its interval
///
/// Pure: time is an argument. Threads: one.
#pragma once

#include <optional>

#include "broker/server/pulse.hpp"

namespace leasehold {

class Wakeups {
 public:
  static constexpr Duration kStatusInterval = std::chrono::seconds(1);

  struct ServiceManager {
    /// The manager restarts a broker that is silent for this long.
    std::optional<Duration> watchdog;
  };
  /// `manager`: nothing if there is no service manager.
  explicit Wakeups(std::optional<ServiceManager> manager) : manager_(manager) {}

  struct Reasons {
    bool table_is_writable = false;
    bool awaits_timeout = false;
    bool connections_need_checks = false;
    bool needs_poll() const {
      return table_is_writable || awaits_timeout || connections_need_checks;
    }
  };
  /// The time of the next wakeup. Nothing: the loop may sleep until an event arrives.
  std::optional<TimePoint> next(const Reasons& reasons, TimePoint now) const;

  /// Notes that the status may have changed.
  void status_changed() { is_stale_ = true; }
  /// True if the status must be sent now, which also feeds the watchdog.
  bool take_status_due(TimePoint now);

 private:
  std::optional<TimePoint> next_status() const;

  std::optional<ServiceManager> manager_;
  TimePoint sent_at_;
  bool is_stale_ = true;
};

/// Reads $NOTIFY_SOCKET and $WATCHDOG_USEC. Source: sd_watchdog_enabled(3).
std::optional<Wakeups::ServiceManager> service_manager_of_this_process();

}  // namespace leasehold
