/// Stops running sequences whose lease or request has run out of time, within one unit.
///
/// A thread of its own sleeps until the earliest deadline; the hot path reads no clock. Renewals
/// move a lease's deadline in the table, so it is read again when the sleep is over.
///
/// Lifetime: board, table and clock outlive it.
#pragma once

#include <thread>

#include "ipc/table/table_reader.hpp"
#include "worker/engine/running_board.hpp"

namespace leasehold {

/// Why `occupant` must stop at `now`; None when it may go on.
LocalStop due_stop(const Occupant& occupant, TimePoint lease_deadline, TimePoint now);

class DeadlineWatcher {
 public:
  DeadlineWatcher(RunningBoard& board, const TableReader& table, const Clock& clock);
  ~DeadlineWatcher();

 private:
  void watch(const std::stop_token& stop);
  Duration until_earliest() const;

  RunningBoard* board_;
  const TableReader* table_;
  const Clock* clock_;
  std::jthread thread_;
};

}  // namespace leasehold
