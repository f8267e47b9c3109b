/// The memfds behind extents and weights regions.
///
/// Ownership: owns every object from its first grant until it is proven empty. `objects_of` returns
/// shared ownership, which keeps an object open. Threads: the io_context's thread; the free
/// functions run on any thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "broker/decide/event.hpp"
#include "ipc/region/memory_object.hpp"

namespace leasehold {

/// An extent whose memory is being reclaimed. `object` is null when it was never created or was not
/// redelivered after a restart.
struct ExtentObject {
  ExtentId id;
  std::shared_ptr<MemoryObject> object;
};
using ExtentObjects = std::vector<ExtentObject>;

/// Whether a new extent may have pages.
enum class ExtentPages : bool { Absent, ClearedIfReady };

/// Frees the pages of every extent. If some fail, returns the last error.
Result<void> punch(const ExtentObjects& extents);
/// Bytes allocated in each extent. An extent that cannot be read counts as not empty.
ExtentsVerified verify(const ExtentObjects& extents);
/// Bytes of all pages of the extents. An extent that cannot be read counts as 0.
std::uint64_t touched_bytes(const ExtentObjects& extents);
/// A new object whose pages are all present and zero, as huge pages where the kernel has them. The
/// call takes as long as clearing the memory. Errors: OutOfMemory, SystemError.
Result<MemoryObject> cleared_object(std::size_t size_bytes);
/// Punches the region and returns the bytes that are still allocated; 0 if `region` is null.
std::uint64_t scrub(const std::shared_ptr<MemoryObject>& region);

class MemoryStore {
 public:
  /// Creates the extent's object without pages or, with ClearedIfReady, takes one of this size that
  /// was cleared ahead, if there is one. Precondition: the extent has no object. Errors:
  /// OutOfMemory, SystemError.
  Result<void> create_extent(ExtentId extent, std::size_t size_bytes, ExtentPages pages);

  /// Returns one descriptor per extent. Errors: UnknownLease when an extent has no object,
  /// SystemError.
  Result<std::vector<UniqueFd>> extents_for_worker(std::span<const ExtentId> extents) const;

  /// The next extent with ClearedIfReady takes this object. Precondition: `cleared_object` made it,
  /// and no other process has had its descriptor.
  void add_cleared(MemoryObject object) { cleared_.push_back(std::move(object)); }
  std::uint32_t cleared_objects() const { return static_cast<std::uint32_t>(cleared_.size()); }
  /// Removes and returns the surplus cleared objects: those of another size, and those beyond
  /// `count`.
  std::vector<MemoryObject> take_surplus(std::uint32_t count, std::size_t size_bytes);

  ExtentObjects objects_of(std::span<const ExtentId> extents) const;
  /// The objects of all extents.
  ExtentObjects objects() const;
  /// Bytes of their pages when they were last counted, see HostMemory::count_touched.
  std::uint64_t touched_bytes() const { return touched_bytes_; }
  void set_touched_bytes(std::uint64_t bytes) { touched_bytes_ = bytes; }
  /// Returns what `objects_of` returns. Afterwards, `redeliver` refuses these extents.
  ExtentObjects objects_to_return(std::span<const ExtentId> extents);
  /// Closes the extents that were found empty, or all with `close_anyway`, and marks them as
  /// `closed`.
  void close(ExtentsVerified& verified, bool close_anyway);

  /// A read-only descriptor. Errors: UnknownLease when the extent has no object.
  Result<UniqueFd> open_extent(ExtentId extent) const;

  /// Identity of the extent's object; zeros if it has none.
  MemoryIdentity identity(ExtentId extent) const;

  /// Expects that the worker redelivers the object of this extent: after a restart the worker has
  /// the only descriptor.
  void expect(ExtentId extent, const MemoryIdentity& identity) { expected_[extent] = identity; }
  /// Takes the redelivered descriptor of an expected extent, if its object is the one in the
  /// journal. Idempotent. Errors: UntrustedSegment for any other object, or for a read-only
  /// descriptor.
  Result<void> redeliver(ExtentId extent, UniqueFd fd);

  Result<void> create_region(RegionId region, std::size_t size_bytes);
  Result<void> seal_region(RegionId region);
  /// Takes the descriptor of a published region that the previous broker kept. Errors:
  /// UntrustedSegment.
  Result<void> restore_region(RegionId region, UniqueFd fd, std::size_t size_bytes);
  std::shared_ptr<MemoryObject> region_object(RegionId region) const;  ///< Null when there is none.
  void close_region(RegionId region) { regions_.erase(region); }
  Result<UniqueFd> region_fd(RegionId region, bool writable) const;

 private:
  /// Errors: UnknownLease when the extent has no object.
  Result<const MemoryObject*> object_of(ExtentId extent) const;

  std::map<ExtentId, std::shared_ptr<MemoryObject>> extents_;
  std::vector<MemoryObject> cleared_;  // all of one size
  std::uint64_t touched_bytes_ = 0;
  std::map<ExtentId, MemoryIdentity> expected_;
  std::map<RegionId, std::shared_ptr<MemoryObject>> regions_;
};

}  // namespace leasehold
