/// The memory objects behind extents and weights regions.
///
/// Ownership: every object is here from its first grant until it is proven empty. Threads: one.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "broker/event.hpp"
#include "ipc/region/memory_object.hpp"

namespace leasehold {

class MemoryStore {
 public:
  /// A descriptor per extent for its worker; makes what does not exist yet. When one cannot be
  /// made, none of the new ones stays. Errors: OutOfMemory, SystemError.
  Result<std::vector<UniqueFd>> extents_for_worker(std::span<const ExtentId> extents,
                                                   std::size_t size_bytes);

  /// The extent's object, made if there is none yet. Errors: OutOfMemory, SystemError.
  Result<MemoryIdentity> make_extent(ExtentId extent, std::size_t size_bytes);

  /// Gives the pages back. Extents that were never made are passed over.
  Result<void> punch(std::span<const ExtentId> extents);

  /// What is allocated in each; empty ones are closed, with `close_anyway` all. Unreadable counts
  /// as not empty.
  ExtentsVerified verify(std::span<const ExtentId> extents, bool close_anyway);

  /// A read-only descriptor. Errors: UnknownLease when the extent has no object.
  Result<UniqueFd> open_extent(ExtentId extent) const;

  /// Inode of the extent's object, 0 when it has none.
  std::uint64_t inode(ExtentId extent) const;

  /// After a restart: the extent exists, its object is in the hands of its worker.
  void expect(ExtentId extent, const MemoryIdentity& identity) { expected_[extent] = identity; }
  /// Takes an expected extent from its worker, by what it is and not by what is said of it. Once
  /// more is fine. Errors: UntrustedSegment for any other object, or one that cannot be punched.
  Result<void> adopt(ExtentId extent, UniqueFd fd);

  Result<void> create_region(RegionId region, std::size_t size_bytes);
  Result<void> seal_region(RegionId region);
  /// A published region that outlived the broker. Errors: UntrustedSegment.
  Result<void> adopt_region(RegionId region, UniqueFd fd, std::size_t size_bytes);
  const UniqueFd* region_object(RegionId region) const;  ///< Null when there is none.
  /// Punches, reads what is allocated and closes when that is nothing.
  std::uint64_t scrub_region(RegionId region);
  void close_region(RegionId region) { regions_.erase(region); }
  Result<UniqueFd> region_fd(RegionId region, bool writable) const;

 private:
  std::map<ExtentId, MemoryObject> extents_;
  std::map<ExtentId, MemoryIdentity> expected_;
  std::map<RegionId, MemoryObject> regions_;
};

}  // namespace leasehold
