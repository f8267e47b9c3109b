/// Moves blocks of swapped sequences to the spill file and back, to make room in swap.
///
/// With a spill file (`lend`), an already swapped sequence is written to the file when that is
/// cheaper than computing its rows again, and the victim of a preemption keeps running until the
/// swap blocks are free. A spilled sequence is admitted with all its KV blocks allocated, and
/// computes no row until they are read back; if reading fails, its rows are computed again.
///
/// Invariant: the blocks stay in swap until all are written, so a write that fails or takes too
/// long changes nothing.
///
/// Pure: time is an argument; copies are listed in Transfers, and jobs for the store in
/// SpillTracker. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "worker/schedule/events.hpp"
#include "worker/schedule/memory/spill_tracker.hpp"
#include "worker/schedule/memory/swap_costs.hpp"
#include "worker/schedule/memory/transfers.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class SpillPlanner {
 public:
  SpillPlanner(const SchedulerLimits& limits, Tenancies& tenancies, const RunningSequences& running,
               Transfers& transfers)
      : limits_(limits), tenancies_(tenancies), running_(running), transfers_(transfers) {}

  /// Precondition: called once, before the first lease.
  void lend(const SpillLimits& limits);

  /// Makes room in the lease's swap pool. Returns true when a spill is in progress, so that the
  /// victim can wait for its swap blocks. The first spill is made regardless of cost, to measure
  /// the file's speed. `row_ns`: the time of a prompt row (SwapCosts).
  bool make_room(const Tenancy& tenancy, std::optional<double> row_ns);
  /// Starts to read the sequence's blocks back into the KV pool. Precondition: it is Spilled, and
  /// `BlockTable::begin_return` holds.
  void begin_return(Sequence& sequence, std::vector<PrefixId> chain);
  /// Ends the sequence's spill, if it has one.
  void end(const Sequence& sequence);
  /// Drops the sequence's pending transfers, and ends its spill.
  void abandon(const Sequence& sequence);

  // ---- in a tick

  /// Fails the spills for which the disk has not answered in time.
  void check_timeouts(TimePoint now);
  /// Lists the blocks to copy between the pools and staging in this step.
  void plan_pieces();
  /// A transfer of pieces was made.
  void copied(const SwapTransfer& made);
  void answered(const std::vector<SpillAnswer>& answers, TimePoint now);

  /// New jobs for the store since the last call.
  std::vector<SpillJob> take_jobs() { return tracker_.take_jobs(); }
  std::vector<SpillEvent> take_events() { return std::exchange(events_, {}); }
  const SpillTracker& tracker() const { return tracker_; }

 private:
  Sequence* choose(const Tenancy& tenancy) const;
  void plan_staging(Spill& spill);
  void plan_return(Spill& spill);
  void finish_return(Spill& spill);
  void fail_spill(Spill& spill, const Error& why);
  void drop_transfers(const Sequence& sequence);
  void note(const Spill& spill, SpillEvent::Kind kind, std::optional<Error> why = {});

  const SchedulerLimits& limits_;
  Tenancies& tenancies_;
  const RunningSequences& running_;
  Transfers& transfers_;
  SpillTracker tracker_;
  SwapCosts costs_;
  bool is_measured_ = false;  // an answer of the store has measured `costs_`
  TimePoint now_;             // time of the last tick or answer
  std::vector<SpillEvent> events_;
};

}  // namespace leasehold
