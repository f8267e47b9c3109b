/// Decides which running sequence gives up its blocks when others lack them.
///
/// When the broker or the quota refuses a block that a running sequence lacks, one sequence of the
/// same lease (for the quota: of the same tenant) is preempted. The victim is the sequence with the
/// lowest priority, then the fewest committed positions, which is the work that is lost, then the
/// latest arrival. It may be the sequence that lacks the block. A sequence that runs alone and does
/// not fit ends with OutOfBlocks.
///
/// Invariant: the oldest running request of the highest priority is never the victim, so it
/// finishes, and then the next one does. In a step at most one sequence stops for each refused
/// growth, and one for each tenant over its quota.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/memory/swap_planner.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

/// A sequence that stops so that others have blocks.
struct Relief {
  Sequence* sequence = nullptr;
  Errc cause = Errc::PoolExhausted;  ///< PoolExhausted or QuotaBlocks.
  bool to_swap = false;              ///< Its blocks move to swap; otherwise they are dropped.
  std::optional<Error> end;          ///< It runs alone, and ends with this error.
};

class Preemption {
 public:
  Preemption(Tenancies& tenancies, const RunningSequences& running, SwapPlanner& swap)
      : tenancies_(tenancies), running_(running), swap_(swap) {}

  /// Forgets the starved sequences and the wanted blocks of the last plan.
  void begin_plan();
  void note_starved(const Starved& starved) { starved_.push_back(starved); }

  /// Calls `stop` for each sequence that has to stop; `stop` stops it before it returns. The freed
  /// blocks may be enough for the other starved sequences. Returns true when a sequence stopped.
  /// `row_ns`: the time of a prompt row (SwapCosts).
  bool relieve(std::optional<double> row_ns, const std::function<void(const Relief&)>& stop);

 private:
  Sequence* choose_victim(const Starved& starved) const;
  Error error_of(const Starved& starved) const;

  Tenancies& tenancies_;
  const RunningSequences& running_;
  SwapPlanner& swap_;
  std::vector<Starved> starved_;  // in the last plan
};

/// The request of a preempted sequence, with its emitted tokens, as it waits again.
PromptRequest request_to_wait(const Sequence& victim);

}  // namespace leasehold
