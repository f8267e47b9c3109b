/// Maps memory objects into this process, through Boost.Interprocess.
///
/// Mappings are excluded from fork and from core dumps. Mapping does not touch the pages; call
/// `prefault` from a thread that may block.
///
/// Threads: any, one at a time per object; const functions may run at the same time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/machine/unique_fd.hpp"
#include "ipc/segment/leased.hpp"

namespace boost::interprocess {
class mapped_region;
}

namespace leasehold {

enum class MapAccess : bool { ReadOnly, ReadWrite };

/// Plain shared memory: tables, worker segments, records. Not for leased memory.
class Mapping {
 public:
  /// Errors: OutOfMemory, SystemError (also for a writable mapping of a read-only descriptor).
  static Result<Mapping> map(const UniqueFd& fd, std::size_t size_bytes, MapAccess access);

  /// A second handle to the same addresses, for another role in this process. The original
  /// outlives it.
  Mapping borrowed() const;

  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Makes every page present (read access is enough to populate a shared mapping).
  Result<void> prefault(MapAccess access) const;
  /// Maps the pages that the object has, and makes small pages where it has none. Unlike
  /// `prefault`, does not collapse pages into huge ones.
  Result<void> populate(MapAccess access) const;

  /// Locks the pages so that a poll never takes a page fault. Errors: SystemError where
  /// RLIMIT_MEMLOCK forbids it.
  Result<void> lock() const;

 private:
  using Region = boost::interprocess::mapped_region;
  Mapping(std::unique_ptr<Region> region, std::byte* data, std::size_t size_bytes);

  std::unique_ptr<Region> region_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// Leased memory. Its address is available only as `Leased`, which cannot be dereferenced without a
/// permit.
///
/// The memory is host or device memory; handles do not say which. A handle to device memory holds a
/// device address, which only a kernel may dereference.
///
/// Lifetime: handles are invalid once the mapping is gone. Unmap only memory whose lease is not in
/// a gate set in use.
class LeasedMapping {
 public:
  /// Maps host memory. Errors: as Mapping::map.
  static Result<LeasedMapping> map(const UniqueFd& fd, std::size_t size_bytes, MapAccess access);

  LeasedMapping(Mapping mapping, MapAccess access);

  /// Wraps memory of any kind. Precondition: `owner` keeps the range mapped with that access, and
  /// unmaps it when destroyed; `addresses`, if given, keeps its addresses reserved.
  LeasedMapping(std::shared_ptr<const void> owner, std::span<std::byte> range, MapAccess access,
                std::shared_ptr<const void> addresses = {})
      : owner_(std::move(owner)),
        addresses_(std::move(addresses)),
        range_(range),
        access_(access) {}
  LeasedMapping(LeasedMapping&&) noexcept = default;
  LeasedMapping& operator=(LeasedMapping&&) noexcept = default;

  Leased<const std::byte> base() const { return Leased<const std::byte>(range_.data()); }

  /// Null when mapped read-only.
  Leased<std::byte> writable_base() const {
    return access_ == MapAccess::ReadWrite ? Leased<std::byte>(range_.data()) : Leased<std::byte>();
  }
  std::size_t size_bytes() const { return range_.size(); }

  /// Keeps the addresses of device memory reserved: while the pointer is held, nothing else is
  /// mapped there, even after the mapping is gone. Null for host memory, which only running units
  /// access.
  const std::shared_ptr<const void>& addresses() const { return addresses_; }

 private:
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const void> addresses_;
  std::span<std::byte> range_;
  MapAccess access_;
};

}  // namespace leasehold
