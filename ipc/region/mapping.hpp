/// Memory objects in this process's address space, through Boost.Interprocess.
///
/// Both kinds are excluded from fork and from core dumps. Mapping never touches the pages; call
/// `prefault` from a thread that may wait.
#pragma once

#include <cstddef>
#include <memory>

#include "common/unique_fd.hpp"
#include "ipc/segment/leased.hpp"

namespace leasehold {

enum class MapAccess : bool { ReadOnly, ReadWrite };

/// Plain shared memory: tables, worker lines, records. Not for leased memory.
class Mapping {
 public:
  /// Errors: OutOfMemory, SystemError (among them a writable map of a read-only descriptor).
  static Result<Mapping> map(const UniqueFd& fd, std::size_t size_bytes, MapAccess access);

  /// The same addresses once more, for another role in the same process. The lender outlives it.
  Mapping borrowed() const;

  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Makes every page present (read access is enough to populate a shared mapping).
  Result<void> prefault(MapAccess access) const;

  /// Locks the pages so that a poll never waits for one. Fails quietly to the caller's log where
  /// RLIMIT_MEMLOCK forbids it.
  Result<void> lock() const;

 private:
  struct Region;
  Mapping(std::unique_ptr<Region> region, std::byte* data, std::size_t size_bytes);

  std::unique_ptr<Region> region_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// Leased memory: its address is only to be had as `Leased`, which needs a permit to follow.
///
/// Of the machine or of a device: whoever made it knows, the handles do not. A handle of a device
/// holds an address of the device; nothing but a kernel may follow it.
///
/// Lifetime: handles die with the mapping; unmap only what no live gate set can name any more.
class LeasedMapping {
 public:
  /// Keeps the addresses mapped, and unmaps them when it goes.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Makes the memory present, where memory can be absent.
    virtual Result<void> prefault(MapAccess) const { return {}; }
  };
  struct Range {
    std::byte* data = nullptr;
    std::size_t size_bytes = 0;
  };

  /// Memory of the machine.
  static Result<LeasedMapping> map(const UniqueFd& fd, std::size_t size_bytes, MapAccess access);

  /// Of any kind. Precondition: `owner` keeps the range mapped, with that access.
  LeasedMapping(std::unique_ptr<Owner> owner, Range range, MapAccess access)
      : owner_(std::move(owner)), range_(range), access_(access) {}

  Leased<const std::byte> base() const { return Leased<const std::byte>(range_.data); }

  /// Null when mapped read-only.
  Leased<std::byte> writable_base() const {
    return access_ == MapAccess::ReadWrite ? Leased<std::byte>(range_.data) : Leased<std::byte>();
  }
  std::size_t size_bytes() const { return range_.size_bytes; }
  Result<void> prefault() const { return owner_->prefault(access_); }

 private:
  std::unique_ptr<Owner> owner_;
  Range range_;
  MapAccess access_;
};

}  // namespace leasehold
