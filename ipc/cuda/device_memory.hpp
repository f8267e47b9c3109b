/// Memory of a card that is passed between processes as a POSIX file descriptor, and its mapping.
///
///   owner:     create ─► export_fd ─► … ─► clear ─► (released with the object)
///   importer:  import ─► DeviceMapping::map ─► (unmapped with the mapping)
///
/// The driver frees the bytes when the last handle and the last mapping in any process are gone. An
/// importer keeps access until it unmaps or exits, even after the owner released the memory.
///
/// Lifetime: the context outlives all these objects. Threads: any, one at a time for one object.
/// Errors: those of cuda::check; UntrustedSegment for a descriptor that is not such memory.
/// Units: sizes in bytes; the driver's granularity rounds them up.
/// Source: CUDA Driver API reference, virtual memory management.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "common/machine/unique_fd.hpp"
#include "ipc/cuda/context.hpp"
#include "ipc/region/mapping.hpp"

namespace leasehold::cuda {

class DeviceMemory {
 public:
  /// The content is undefined: clear the memory (MemoryCleaner) before it is lent.
  static Result<DeviceMemory> create(const Context& context, std::size_t size_bytes);

  /// Further errors: UntrustedSegment. The driver does not report the size of the memory; mapping
  /// more bytes than it has fails.
  static Result<DeviceMemory> import(const Context& context, const UniqueFd& fd,
                                     std::size_t size_bytes);

  DeviceMemory(DeviceMemory&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        handle_(other.handle_),
        size_bytes_(other.size_bytes_) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory();

  Result<UniqueFd> export_fd() const;

  std::size_t size_bytes() const { return size_bytes_; }  ///< Rounded up.

 private:
  friend class DeviceMapping;
  DeviceMemory(const Context& context, CUmemGenericAllocationHandle handle, std::size_t size_bytes)
      : context_(&context), handle_(handle), size_bytes_(size_bytes) {}

  const Context* context_;  // null after a move
  CUmemGenericAllocationHandle handle_;
  std::size_t size_bytes_;
};

/// A reserved range of device addresses in this process. While the object exists, nothing else is
/// mapped there.
class DeviceAddresses {
 public:
  static Result<DeviceAddresses> reserve(const Context& context, std::size_t size_bytes);

  DeviceAddresses(DeviceAddresses&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        begin_(other.begin_),
        size_bytes_(other.size_bytes_) {}
  DeviceAddresses& operator=(DeviceAddresses&&) = delete;
  ~DeviceAddresses();

  const Context& context() const { return *context_; }
  CUdeviceptr begin() const { return begin_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  DeviceAddresses(const Context& context, CUdeviceptr begin, std::size_t size_bytes)
      : context_(&context), begin_(begin), size_bytes_(size_bytes) {}

  const Context* context_;  // null after a move
  CUdeviceptr begin_;
  std::size_t size_bytes_;
};

/// Device memory mapped at addresses of this process. The mapping stays valid after `memory` is
/// released.
class DeviceMapping {
 public:
  /// Where the driver does not support read-only access, ReadOnly is only the caller's promise.
  static Result<DeviceMapping> map(const DeviceMemory& memory, MapAccess access);

  DeviceMapping(DeviceMapping&& other) noexcept = default;
  DeviceMapping& operator=(DeviceMapping&&) = delete;
  /// Unmaps. The addresses stay reserved as long as `addresses()` is held elsewhere.
  ~DeviceMapping();

  CUdeviceptr address() const { return addresses_->begin(); }
  std::size_t size_bytes() const { return addresses_->size_bytes(); }
  const std::shared_ptr<const DeviceAddresses>& addresses() const { return addresses_; }

 private:
  explicit DeviceMapping(DeviceAddresses addresses)
      : addresses_(std::make_shared<const DeviceAddresses>(std::move(addresses))) {}
  Result<void> allow(MapAccess access) const;

  std::shared_ptr<const DeviceAddresses> addresses_;  // null after a move
  bool mapped_ = false;
};

}  // namespace leasehold::cuda
