/// Copies the recurrent state of running sequences into the prefix cache, so that another text with
/// the same beginning can start there.
///
/// A sequence leaves a copy whenever its committed positions are a multiple of kSnapshotPositions
/// (its rows stop there: Sequence::rows_ready), unless its text has one there already. A copy is
/// made only into blocks that are free or evictable, within the tenant's quota, and if every
/// running sequence of the lease could still take its next block. It can be evicted at any time, so
/// it never takes a block that a request needs.
///
/// The copies are made in a step, like swaps (Transfers); the index gets the blocks afterwards.
/// Until then the transfer owns them.
///
/// Pure bookkeeping. Threads: one (the engine's).
#pragma once

#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/memory/transfers.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class StateSnapshots {
 public:
  StateSnapshots(const SchedulerLimits& limits, Tenancies& tenancies,
                 const RunningSequences& running, KvAllocator& kv, Transfers& transfers)
      : limits_(limits), tenancies_(tenancies), running_(running), kv_(kv), transfers_(transfers) {}

  /// Lists the copies of this step.
  void plan();
  /// A transfer with a `state_of` was made.
  void copied(const SwapTransfer& made);

 private:
  bool is_due(const Sequence& sequence) const;
  bool make_room(const Sequence& sequence, Tenancy& tenancy);

  const SchedulerLimits& limits_;
  Tenancies& tenancies_;
  const RunningSequences& running_;
  KvAllocator& kv_;
  Transfers& transfers_;
};

/// Gives back the blocks of a snapshot that was not made, or that the index does not need.
void release_snapshot(const SwapTransfer& transfer, BlockPool& pool);

}  // namespace leasehold
