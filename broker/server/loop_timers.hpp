/// The timers of the broker's loop: one for the next deadline of the state, and one for the wakeups
/// that wakeups.hpp lists.
///
/// Threads: the io_context's thread. Lifetime: the dependencies outlive this object.
#pragma once

#include <memory>
#include <optional>

#include "broker/server/async_boottime_timer.hpp"
#include "broker/server/broker_loop.hpp"
#include "broker/server/connections/connections.hpp"
#include "broker/server/wakeups.hpp"
#include "broker/server/wall_clock_watch.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

class LoopTimers {
 public:
  struct Dependencies {
    const State& state;
    const Clock& clock;
    BrokerLoop& loop;
    LeaseTable& table;
    Connections& connections;
  };
  /// `table_is_writable`: a process of the previous broker may be able to write the lease table.
  LoopTimers(Dependencies dependencies, bool table_is_writable)
      : dependencies_(dependencies), table_is_writable_(table_is_writable) {}

  /// Creates the timers. Call it before any other function. Errors: SystemError.
  Result<void> create(boost::asio::io_context& io);

  /// Posts the offset of the machine's clock, now and whenever the clock is set.
  void watch_clock() { wall_clock_->start(); }

  /// Repairs a table that was changed, and arms both timers for what an event left pending.
  void after_event();

  /// Arms the timer for the next wakeup.
  void arm_wakeup();

 private:
  void wake_up();
  void repair_table();
  void report_status();

  Dependencies dependencies_;
  std::unique_ptr<AsyncBoottimeTimer> deadline_timer_;
  std::unique_ptr<WallClockWatch> wall_clock_;
  Wakeups wakeups_{service_manager_of_this_process()};
  std::unique_ptr<AsyncBoottimeTimer> wakeup_timer_;
  std::optional<TimePoint> wakeup_at_;  ///< When the timer fires. Nothing: it is not armed.
  /// True once a worker that runs as an operator has attached: that worker, or a process that it
  /// started, can write to the table.
  bool table_is_writable_;
};

}  // namespace leasehold
