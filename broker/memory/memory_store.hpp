/// The memory objects behind extents and weights regions.
///
/// Ownership: every object is here from its first grant until it is proven empty; whoever holds one
/// keeps it open meanwhile. Threads: the loop's, but what works on held objects alone.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "broker/decide/event.hpp"
#include "ipc/region/memory_object.hpp"

namespace leasehold {

/// An extent whose memory is being given back. Without an object: it was never made, or is away.
struct HeldExtent {
  ExtentId id;
  std::shared_ptr<MemoryObject> object;
};
using HeldExtents = std::vector<HeldExtent>;

/// Gives the pages back. Any thread.
Result<void> punch(const HeldExtents& extents);
/// What is allocated in each; unreadable counts as not empty. Any thread.
ExtentsVerified verify(const HeldExtents& extents);
/// Punches, and reads what is allocated then; 0 without an object. Any thread.
std::uint64_t scrub(const std::shared_ptr<MemoryObject>& region);

class MemoryStore {
 public:
  /// A descriptor per extent for its worker; makes what does not exist yet. When one cannot be
  /// made, none of the new ones stays. Errors: OutOfMemory, SystemError.
  Result<std::vector<UniqueFd>> extents_for_worker(std::span<const ExtentId> extents,
                                                   std::size_t size_bytes);

  /// The extent's object, made if there is none yet. Errors: OutOfMemory, SystemError.
  Result<MemoryIdentity> make_extent(ExtentId extent, std::size_t size_bytes);

  HeldExtents hold(std::span<const ExtentId> extents) const;
  /// Likewise, and whoever delivers one of them from now on is too late.
  HeldExtents hold_for_good(std::span<const ExtentId> extents);
  /// Closes those found empty, with `close_anyway` all, and notes which.
  void close(ExtentsVerified& verified, bool close_anyway);

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
  std::shared_ptr<MemoryObject> hold_region(RegionId region) const;  ///< Null when there is none.
  void close_region(RegionId region) { regions_.erase(region); }
  Result<UniqueFd> region_fd(RegionId region, bool writable) const;

 private:
  std::map<ExtentId, std::shared_ptr<MemoryObject>> extents_;
  std::map<ExtentId, MemoryIdentity> expected_;
  std::map<RegionId, std::shared_ptr<MemoryObject>> regions_;
};

}  // namespace leasehold
