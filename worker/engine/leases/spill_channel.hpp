/// Passes the scheduler's spill jobs to the SpillQueue with the seals of their leases, and the
/// answers back. Without a spill file it has no jobs.
///
/// Invariant: after `forget`, the blocks that the lease spilled before cannot be decrypted, and no
/// staging buffer holds its data, even while the disk does not answer.
///
/// Threads: one (the engine's), except `forget`.
#pragma once

#include "common/clock.hpp"
#include "kernels/op_args.hpp"
#include "worker/kv/lease_seals.hpp"
#include "worker/kv/spill_store.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class SpillChannel {
 public:
  /// The scheduler outlives the channel. `layout` is that of the spilled blocks.
  SpillChannel(const KvLayout& layout, Scheduler& scheduler);

  /// Both outlive the channel. The number of slots and buffers is the store's, whatever `limits`
  /// says. Precondition: called once, before the first lease.
  void lend(SpillStore& store, SpillQueue& queue, SpillLimits limits);

  /// Passes the queue's answers to the scheduler, and posts the jobs that follow from them.
  void take_answers(const Clock& clock);
  void post_jobs();

  /// The address of a staging buffer that holds a block of the lease from now on. Precondition: a
  /// store is lent.
  Leased<std::byte> staging(std::uint32_t buffer, LeaseId lease) const {
    return store_->staging(buffer, lease);
  }

  /// Discards the key of the lease's spilled blocks, and clears its staging buffers. Threads: any.
  void forget(LeaseId lease);

 private:
  Scheduler* scheduler_;
  LeaseSeals seals_;
  SpillStore* store_ = nullptr;
  SpillQueue* queue_ = nullptr;
};

}  // namespace leasehold
