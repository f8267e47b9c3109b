/// Memory of a card that travels between processes as a POSIX file descriptor, and its mapping.
///
///   owner:     create ─► export_fd ─► … ─► clear ─► (released with the object)
///   importer:  import ─► DeviceMapping::map ─► (unmapped with the mapping)
///
/// The driver frees the bytes when the last handle and the last mapping are gone, in any process:
/// whoever imported keeps access until it unmaps or exits, whatever the owner does.
///
/// Lifetime: the context outlives all of them. Threads: any, one at a time for one object.
/// Errors: those of cuda::check; UntrustedSegment for a descriptor that is no such memory.
/// Units: sizes in bytes; the driver's granularity rounds them up.
/// Source: CUDA Driver API reference, virtual memory management.
#pragma once

#include <cstddef>
#include <utility>

#include "common/unique_fd.hpp"
#include "ipc/cuda/context.hpp"
#include "ipc/region/mapping.hpp"

namespace leasehold::cuda {

/// What the driver makes of a size: the next multiple of its granularity.
Result<std::size_t> rounded_size(const Context& context, std::size_t size_bytes);

class DeviceMemory {
 public:
  /// Its content is whatever was there before: `clear` comes before it is lent to anybody.
  static Result<DeviceMemory> create(const Context& context, std::size_t size_bytes);

  /// Errors besides: UntrustedSegment. The driver does not say how large it is; mapping more of it
  /// than there is fails.
  static Result<DeviceMemory> import(const Context& context, const UniqueFd& fd,
                                     std::size_t size_bytes);

  DeviceMemory(DeviceMemory&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        handle_(other.handle_),
        size_bytes_(other.size_bytes_) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory();

  Result<UniqueFd> export_fd() const;

  /// Zeros every byte and waits until that is done. Nobody may be using it.
  Result<void> clear() const;

  std::size_t size_bytes() const { return size_bytes_; }  ///< Rounded up.

 private:
  friend class DeviceMapping;
  DeviceMemory(const Context& context, CUmemGenericAllocationHandle handle, std::size_t size_bytes)
      : context_(&context), handle_(handle), size_bytes_(size_bytes) {}

  const Context* context_;  // none: moved from
  CUmemGenericAllocationHandle handle_;
  std::size_t size_bytes_;
};

/// Addresses of this process under which the card finds the memory. They outlive the handle.
class DeviceMapping {
 public:
  /// Where the driver knows no read-only access, ReadOnly is a promise of the caller alone.
  static Result<DeviceMapping> map(const DeviceMemory& memory, MapAccess access);

  DeviceMapping(DeviceMapping&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        begin_(other.begin_),
        size_bytes_(other.size_bytes_),
        mapped_(other.mapped_) {}
  DeviceMapping& operator=(DeviceMapping&&) = delete;
  ~DeviceMapping();

  CUdeviceptr address() const { return begin_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  DeviceMapping(const Context& context, CUdeviceptr address, std::size_t size_bytes)
      : context_(&context), begin_(address), size_bytes_(size_bytes) {}
  Result<void> allow(MapAccess access) const;

  const Context* context_;  // none: moved from
  CUdeviceptr begin_;
  std::size_t size_bytes_;
  bool mapped_ = false;
};

}  // namespace leasehold::cuda
