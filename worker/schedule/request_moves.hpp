/// Moves a running sequence to another lease of its tenant.
///
/// Invariant: between `begin` and `finish` or `drop` the sequence has blocks in both leases, and
/// runs under the old one. The blocks of the new lease are reserved before anything is copied, so a
/// move that begins cannot fail for lack of blocks.
///
/// Pure bookkeeping: the caller makes the copies of the Move. Threads: one (the engine's).
#pragma once

#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/pending_events.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class RequestMoves {
 public:
  RequestMoves(Tenancies& tenancies, KvAllocator& kv, PendingEvents& events)
      : tenancies_(tenancies), kv_(kv), events_(events) {}

  /// Errors: those of Scheduler::begin_move about the lease `to` and its blocks. Precondition: the
  /// sequence runs, has its blocks in the KV pool, and no transfer is pending.
  Result<Move> begin(Sequence& sequence, LeaseId to);
  /// Assigns the sequence to the new lease and frees its blocks of the old lease. Blocks cached
  /// under the old lease stay there. Emits Rebound.
  void finish(Move move, Duration since_call);
  /// Abandons the move; the sequence stays under its lease.
  void drop(Move move);

 private:
  std::uint32_t freed_blocks(const Sequence& sequence) const;
  Result<void> check_room(const Sequence& sequence, Tenancy& to) const;

  Tenancies& tenancies_;
  KvAllocator& kv_;
  PendingEvents& events_;
};

}  // namespace leasehold
