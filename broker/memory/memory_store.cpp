#include "broker/memory/memory_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>

namespace leasehold {
namespace {

constexpr std::uint64_t kUnknownBytes = ~std::uint64_t{0};

std::shared_ptr<MemoryObject> shared(MemoryObject object) {
  return std::make_shared<MemoryObject>(std::move(object));
}

std::uint64_t allocated(const MemoryObject& object) {
  const auto bytes = object.allocated_bytes();
  return bytes ? *bytes : kUnknownBytes;
}

}  // namespace

Result<MemoryObject> cleared_object(std::size_t size_bytes) {
  return create_present({.name = "leasehold-extent", .size_bytes = size_bytes});
}

Result<void> punch(const ExtentObjects& extents) {
  Result<void> outcome;
  for (const ExtentObject& extent : extents) {
    if (!extent.object) continue;
    if (auto punched = extent.object->punch(); !punched) outcome = punched;
  }
  return outcome;
}

ExtentsVerified verify(const ExtentObjects& extents) {
  ExtentsVerified verified;
  for (const ExtentObject& extent : extents) {
    const std::uint64_t bytes = extent.object ? allocated(*extent.object) : 0;
    verified.entries.push_back({.extent = extent.id, .allocated_bytes = bytes});
  }
  return verified;
}

std::uint64_t touched_bytes(const ExtentObjects& extents) {
  std::uint64_t bytes = 0;
  for (const ExtentObject& extent : extents) bytes += extent.object->allocated_bytes().value_or(0);
  return bytes;
}

std::uint64_t scrub(const std::shared_ptr<MemoryObject>& region) {
  if (!region) return 0;
  (void)region->punch();  // a failure shows as bytes that are still allocated
  return allocated(*region);
}

Result<void> MemoryStore::create_extent(ExtentId extent, std::size_t size_bytes,
                                        ExtentPages pages) {
  if (pages == ExtentPages::ClearedIfReady && !cleared_.empty() &&
      cleared_.back().size_bytes() == size_bytes) {
    extents_.emplace(extent, shared(std::move(cleared_.back())));
    cleared_.pop_back();
    return {};
  }
  const std::string name = fmt::format("leasehold-extent-{}", extent.value);
  extents_.emplace(
      extent, shared(TRY(MemoryObject::create({.name = name.c_str(), .size_bytes = size_bytes}))));
  return {};
}

Result<const MemoryObject*> MemoryStore::object_of(ExtentId extent) const {
  const auto found = extents_.find(extent);
  if (found != extents_.end()) return found->second.get();
  return fail(
      Errc::UnknownLease,
      fmt::format("extent {} has no memory; list extents with `brokerctl extents`", extent.value));
}

std::vector<MemoryObject> MemoryStore::take_surplus(std::uint32_t count, std::size_t size_bytes) {
  std::vector<MemoryObject> surplus;
  const bool fits = !cleared_.empty() && cleared_.back().size_bytes() == size_bytes;
  while (cleared_.size() > (fits ? count : 0)) {
    surplus.push_back(std::move(cleared_.back()));
    cleared_.pop_back();
  }
  return surplus;
}

Result<std::vector<UniqueFd>> MemoryStore::extents_for_worker(
    std::span<const ExtentId> extents) const {
  std::vector<UniqueFd> fds;
  for (const ExtentId id : extents) {
    const MemoryObject* const object = TRY(object_of(id));
    fds.push_back(TRY(object->fd().duplicate()));
  }
  return fds;
}

ExtentObjects MemoryStore::objects_of(std::span<const ExtentId> extents) const {
  ExtentObjects objects;
  for (const ExtentId id : extents) {
    const auto found = extents_.find(id);
    objects.push_back({id, found == extents_.end() ? nullptr : found->second});
  }
  return objects;
}

ExtentObjects MemoryStore::objects() const {
  ExtentObjects objects;
  objects.reserve(extents_.size());
  for (const auto& [id, object] : extents_) objects.push_back({id, object});
  return objects;
}

ExtentObjects MemoryStore::objects_to_return(std::span<const ExtentId> extents) {
  for (const ExtentId id : extents) expected_.erase(id);
  return objects_of(extents);
}

void MemoryStore::close(ExtentsVerified& verified, bool close_anyway) {
  for (auto& entry : verified.entries) {
    entry.closed = entry.allocated_bytes == 0 || close_anyway;
    if (entry.closed) extents_.erase(entry.extent);
  }
}

Result<UniqueFd> MemoryStore::open_extent(ExtentId extent) const {
  return TRY(object_of(extent))->open_read_only();
}

MemoryIdentity MemoryStore::identity(ExtentId extent) const {
  const auto object = object_of(extent);
  return object ? (*object)->identity().value_or(MemoryIdentity{}) : MemoryIdentity{};
}

Result<void> MemoryStore::redeliver(ExtentId extent, UniqueFd fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the descriptor delivered for extent {} is not writable; deliver the "
                            "one that was granted",
                            extent.value));
  }
  MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  const MemoryIdentity identity = TRY(object.identity());
  const auto found = extents_.find(extent);
  const auto expected = expected_.find(extent);
  const bool is_repeated = found != extents_.end() && TRY(found->second->identity()) == identity;
  if (is_repeated) return {};
  if (expected == expected_.end() || expected->second != identity) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the object delivered as extent {} (inode {}, {} bytes) is not the one "
                            "that was granted",
                            extent.value, identity.inode, identity.size_bytes));
  }
  expected_.erase(expected);
  extents_.emplace(extent, shared(std::move(object)));
  return {};
}

Result<void> MemoryStore::restore_region(RegionId region, UniqueFd fd, std::size_t size_bytes) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  if ((seals & F_SEAL_WRITE) == 0 || object.size_bytes() != size_bytes) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the descriptor kept for weights region {} does not name a sealed "
                            "object of {} bytes",
                            region.value, size_bytes));
  }
  regions_.emplace(region, shared(std::move(object)));
  return {};
}

std::shared_ptr<MemoryObject> MemoryStore::region_object(RegionId region) const {
  const auto found = regions_.find(region);
  return found == regions_.end() ? nullptr : found->second;
}

Result<void> MemoryStore::create_region(RegionId region, std::size_t size_bytes) {
  const std::string name = fmt::format("leasehold-weights-{}", region.value);
  MemoryObject object = TRY(
      MemoryObject::create({.name = name.c_str(), .size_bytes = size_bytes, .final_seals = false}));
  regions_.emplace(region, shared(std::move(object)));
  return {};
}

Result<void> MemoryStore::seal_region(RegionId region) {
  const auto found = regions_.find(region);
  if (found == regions_.end()) {
    return fail(Errc::SystemError, fmt::format("weights region {} has no memory", region.value));
  }
  return found->second->seal_against_writing();
}

Result<UniqueFd> MemoryStore::region_fd(RegionId region, bool writable) const {
  const auto found = regions_.find(region);
  if (found == regions_.end()) {
    return fail(Errc::LeaseRevoked,
                fmt::format("weights region {} is closed; open it again", region.value));
  }
  return writable ? found->second->fd().duplicate() : found->second->open_read_only();
}

}  // namespace leasehold
