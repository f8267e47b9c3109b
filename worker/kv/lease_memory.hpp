/// Where the blocks of each lease lie in this process.
///
/// Every address a step uses comes from `address`, which refuses a block that is not of the asking
/// lease: whatever a block table says, one tenant's step never reaches another tenant's extent.
///
/// Lifetime: an address is good until its lease is dropped: between steps, or once it is fenced.
/// Threads: any.
#pragma once

#include <map>
#include <mutex>
#include <span>

#include "ipc/region/mapping.hpp"
#include "worker/kv/block_pool.hpp"

namespace leasehold {

class LeaseMemory {
 public:
  explicit LeaseMemory(std::uint64_t block_size_bytes) : block_size_bytes_(block_size_bytes) {}

  std::uint64_t block_size_bytes() const { return block_size_bytes_; }

  void add(LeaseId lease, ExtentId extent, LeasedMapping mapping);

  bool has(LeaseId lease, ExtentId extent) const;

  /// Unmaps these extents of the lease.
  void remove(LeaseId lease, std::span<const ExtentId> extents);

  /// Unmaps all of the lease. False when there was nothing.
  bool drop(LeaseId lease);

  /// Errors: LeaseFenced when the block's extent is not mapped for this lease, or the block does
  /// not lie inside it.
  Result<Leased<std::byte>> address(LeaseId lease, BlockId block) const;

 private:
  std::uint64_t block_size_bytes_;
  mutable std::mutex mutex_;
  std::map<LeaseId, std::map<ExtentId, LeasedMapping>> leases_;
};

}  // namespace leasehold
