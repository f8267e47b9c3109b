/// Stops running sequences whose lease or request has run out of time, within one unit.
///
/// A thread of its own sleeps until the earliest deadline, by the clock deadlines are on, so that
/// one that passed while the machine slept acts as soon as it is awake; the hot path reads no
/// clock. Renewals move a lease's deadline in the table, so it is read again when the sleep is
/// over.
///
/// Lifetime: everything in Dependencies outlives it.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "common/boottime_timer.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/engine/lease_time.hpp"
#include "worker/engine/running_requests.hpp"

namespace leasehold {

/// Why `running_request` must stop at `now`; None when it may go on.
LocalStop deadline_stop(const RunningRequest& running_request, LeaseTime lease, TimePoint now);

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
  TimePoint earliest_deadline() const;

  Dependencies deps_;
  BoottimeTimer alarm_;
  std::jthread thread_;
};

}  // namespace leasehold
