/// The addresses of each lease's blocks in this process.
///
/// Every address that a step uses comes from `address`, which refuses a block outside the lease. An
/// incorrect block table therefore cannot give one tenant's sequence access to another tenant's
/// extent.
///
/// Lifetime: an address is valid until its lease is dropped, between steps or after its fence.
/// Threads: any.
#pragma once

#include <map>
#include <memory>
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

  /// Every block of the lease, by extent.
  std::vector<BlockId> blocks(LeaseId lease) const;

  struct Extent {
    Leased<std::byte> base;
    std::uint64_t size_bytes = 0;
  };
  /// Every extent of the lease, by its id.
  std::vector<Extent> extents(LeaseId lease) const;

  /// Unmaps these extents of the lease.
  void remove(LeaseId lease, std::span<const ExtentId> extents);

  /// Unmaps all memory of the lease. Returns false when none was mapped. On a GPU the addresses
  /// stay reserved until `release_addresses`, because the block table of a running step may contain
  /// them, and memory of another lease must not be mapped there.
  bool drop(LeaseId lease);
  /// Frees the addresses that `drop` kept reserved. Precondition: no step runs.
  void release_addresses(LeaseId lease);

  /// Errors: LeaseFenced when the block's extent is not mapped for this lease, or the block lies
  /// outside the extent.
  Result<Leased<std::byte>> address(LeaseId lease, BlockId block) const;

 private:
  std::uint64_t block_size_bytes_;
  mutable std::mutex mutex_;
  std::map<LeaseId, std::map<ExtentId, LeasedMapping>> leases_;
  std::multimap<LeaseId, std::shared_ptr<const void>> addresses_;  // of dropped leases
};

}  // namespace leasehold
