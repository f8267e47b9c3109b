/// Stops running sequences whose lease or request has run out of time, within one unit.
///
/// A thread of its own sleeps until the earliest deadline, by the clock deadlines are on, so that
/// one that passed while the machine slept acts as soon as it is awake; the hot path reads no
/// clock. Renewals move a lease's deadline in the table, so it is read again when the sleep is
/// over.
///
/// Lifetime: everything in Parts outlives it.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "common/boottime_timer.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/engine/lease_time.hpp"
#include "worker/engine/running_requests.hpp"

namespace leasehold {

/// Why `occupant` must stop at `now`; None when it may go on.
LocalStop deadline_stop(const RunningRequest& occupant, LeaseTime lease, TimePoint now);

class DeadlineWatcher {
 public:
  struct Parts {
    RunningRequests* board = nullptr;
    const TableReader* table = nullptr;
    const Clock* clock = nullptr;
    const std::atomic<bool>* broker_away = nullptr;
  };
  /// Errors: SystemError.
  static Result<std::unique_ptr<DeadlineWatcher>> begin(const Parts& parts);
  ~DeadlineWatcher();

 private:
  DeadlineWatcher(const Parts& parts, BoottimeTimer alarm);
  void watch(const std::stop_token& stop);
  TimePoint earliest() const;

  Parts parts_;
  BoottimeTimer alarm_;
  std::jthread thread_;
};

}  // namespace leasehold
