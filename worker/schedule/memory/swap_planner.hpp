/// Moves the blocks of preempted sequences to the lease's swap pool and back.
///
/// A victim is swapped out when copying its blocks is cheaper than computing its rows again
/// (SwapCosts); otherwise it is dropped. When the swap pool is full, the planner asks the broker
/// for more; until the broker answers, the victim keeps running; after a refusal, victims are
/// dropped unless a spill makes room. A sequence that reads published text is always dropped.
///
/// Invariant: a copy is listed in Transfers as soon as it is decided, and the pools treat it as
/// made: its source blocks are free at once.
///
/// Pure bookkeeping. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/schedule/events.hpp"
#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/memory/spill_planner.hpp"
#include "worker/schedule/memory/swap_costs.hpp"
#include "worker/schedule/memory/transfers.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class SwapPlanner {
 public:
  SwapPlanner(const SchedulerLimits& limits, Tenancies& tenancies, const RunningSequences& running,
              KvAllocator& kv, Transfers& transfers)
      : limits_(limits),
        tenancies_(tenancies),
        kv_(kv),
        transfers_(transfers),
        spill_(limits, tenancies, running, transfers) {}

  /// The spill file, which makes room in swap.
  SpillPlanner& spill() { return spill_; }
  const SpillPlanner& spill() const { return spill_; }

  /// Await: the victim keeps running until the broker lends swap or a spill makes room.
  enum class Choice { Drop, SwapOut, Await };
  /// `row_ns`: the time of a prompt row (SwapCosts).
  Choice choose(const Sequence& victim, std::optional<double> row_ns);

  /// Returns the number of blocks that move to swap. Precondition: `choose` returned SwapOut.
  std::uint32_t swap_out(Sequence& victim);
  /// Moves the blocks back. Precondition: as for `BlockTable::swap_in` or `begin_return`.
  void swap_in(Sequence& sequence, std::vector<PrefixId> chain);
  /// A transfer between the pools was made.
  void copied(const SwapTransfer& made, Duration copying);
  /// Frees the swap blocks and the spill of a waiting request that ends, if it has any. Its text
  /// may still be cached.
  void free(const PromptRequest& request, const Completed& how);

 private:
  SwapWork work_of(const Sequence& victim) const;

  const SchedulerLimits& limits_;
  Tenancies& tenancies_;
  KvAllocator& kv_;
  Transfers& transfers_;
  SpillPlanner spill_;
  SwapCosts costs_;
};

}  // namespace leasehold
