/// Objects of the driver; the destructor of each releases it.
///
/// Lifetime: the context outlives all of them. Threads: one at a time, with the context current.
/// Errors: those of cuda::check. Units: bytes.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "ipc/cuda/context.hpp"

namespace leasehold::cuda {

/// Converts an address to the pointer type of kernel parameters.
template <class T = std::byte>
T* device_pointer(CUdeviceptr address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}
inline CUdeviceptr device_address(const void* pointer) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

/// Rounds up to the next offset in a buffer that suits any content.
constexpr std::size_t aligned(std::size_t size_bytes) {
  constexpr std::size_t kAlignment = 256;
  return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// An object of the driver, which `kRelease` releases. Empty by default and after a move.
template <class Handle, auto kRelease>
class Owned {
 public:
  Owned() = default;
  Owned(const Context& context, Handle handle) : driver_(&context.driver()), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  /// Ignores driver errors: after a fault every driver call fails and the process is about to end.
  ~Owned() {
    if (handle_ != Handle{}) (void)(driver_->*kRelease)(handle_);
  }

  Handle get() const { return handle_; }

 private:
  const Driver* driver_ = nullptr;
  Handle handle_ = {};
};

using Stream = Owned<CUstream, &Driver::cuStreamDestroy>;
/// The driver clamps priorities that are out of range; the lowest number is the highest priority.
inline constexpr int kHighestPriority = -5;
Result<Stream> create_stream(const Context& context, int priority = 0);

/// Reports when the work enqueued before it in a stream is done.
using Event = Owned<CUevent, &Driver::cuEventDestroy>;
Result<Event> create_event(const Context& context);

/// Memory with its size; empty if allocated with size 0.
template <class Address, auto kFree>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  static Result<Buffer> allocate(const Context& context, std::size_t size_bytes);

  std::byte* data() const {
    if constexpr (std::is_pointer_v<Address>)
      return static_cast<std::byte*>(memory_.get());
    else
      return device_pointer<>(memory_.get());
  }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  Owned<Address, kFree> memory_;
  std::size_t size_bytes_ = 0;
};

/// Card memory that only this process uses.
using DeviceBuffer = Buffer<CUdeviceptr, &Driver::cuMemFree>;
template <>
Result<DeviceBuffer> DeviceBuffer::allocate(const Context& context, std::size_t size_bytes);

/// Pinned host memory that the card can read and write.
using PinnedBuffer = Buffer<void*, &Driver::cuMemFreeHost>;
template <>
Result<PinnedBuffer> PinnedBuffer::allocate(const Context& context, std::size_t size_bytes);

}  // namespace leasehold::cuda
