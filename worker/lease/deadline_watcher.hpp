/// Stops running sequences whose lease or request has passed its deadline, within one unit.
///
/// Its thread sleeps until the earliest deadline on CLOCK_BOOTTIME, so a deadline that passes while
/// the machine is suspended takes effect on wake-up, and no gate reads a clock. Renewals move a
/// lease's deadline in the table, so the watcher reads it again after each sleep. While no request
/// runs, the thread sleeps until a request starts. Before each commit the engine applies the same
/// rule, because both threads may have been stopped together.
///
/// Lifetime: everything in Dependencies outlives the watcher.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "common/machine/boottime_timer.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/engine/lease_expiry.hpp"
#include "worker/engine/running_requests.hpp"

namespace leasehold {

/// The time at which the deadlines must be read again: the earliest deadline, but at most a second
/// from now; the largest TimePoint while no request runs.
TimePoint next_deadline_check(const RunningRequests& running_requests, const TableReader& table,
                              TimePoint now);

class DeadlineWatcher {
 public:
  struct Dependencies {
    RunningRequests* running_requests = nullptr;
    const TableReader* table = nullptr;
    const Clock* clock = nullptr;
    const std::atomic<bool>* broker_disconnected = nullptr;
  };
  /// Errors: SystemError.
  static Result<std::unique_ptr<DeadlineWatcher>> start(const Dependencies& dependencies);
  ~DeadlineWatcher();

 private:
  DeadlineWatcher(const Dependencies& dependencies, BoottimeTimer alarm);
  void watch(const std::stop_token& stop);

  Dependencies deps_;
  BoottimeTimer alarm_;
  std::jthread thread_;
};

}  // namespace leasehold
