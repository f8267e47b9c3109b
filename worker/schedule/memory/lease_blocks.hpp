/// The blocks of leases outside of a step: extents that are granted and returned, and the records
/// of sequences in them.
///
/// A view of the scheduler's tenancies; valid while the scheduler exists. Threads: one (the
/// engine's).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "worker/kv/adopted_records.hpp"
#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/memory/transfers.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class LeaseBlocks {
 public:
  LeaseBlocks(Tenancies& tenancies, KvAllocator& kv, const Transfers& transfers)
      : tenancies_(tenancies), kv_(kv), transfers_(transfers) {}

  /// Precondition: the lease is known.
  void add_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks);
  void add_swap_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks);
  /// Removes up to `count` extents of a pool that no sequence uses; cached blocks in them are
  /// evicted. Removes none while transfers of the lease are pending, because their source blocks
  /// count as free.
  std::vector<ExtentId> remove_free_extents(LeaseId lease, std::uint32_t count,
                                            wire::MemoryPool pool = wire::MemoryPool::Kv);

  /// Caches the prefixes described by records found in the memory of a new lease. Returns the
  /// number of blocks. Precondition: the lease has run no request.
  std::uint32_t adopt(LeaseId lease, const AdoptedRecords& records);
  /// The pool against which such records are checked; null for an unknown lease.
  const BlockPool* pool_of(LeaseId lease) const;
  /// The first blocks of the records of sequences that ended or were moved out since the last call.
  /// The caller clears them before any block is written again.
  std::vector<std::pair<LeaseId, BlockId>> take_released_records();

 private:
  Tenancies& tenancies_;
  KvAllocator& kv_;
  const Transfers& transfers_;
};

}  // namespace leasehold
