/// Objects of the driver; the destructor of each releases it.
///
/// Lifetime: the context outlives all of them. Threads: one at a time, with the context current.
/// Errors: those of cuda::check. Units: bytes.
#pragma once

#include <cstddef>
#include <span>
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

/// Card memory that only this process uses.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  static Result<DeviceBuffer> allocate(const Context& context, std::size_t size_bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer();

  std::byte* data() const { return device_pointer<>(pointer_); }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(pointer_, other.pointer_);
    std::swap(size_bytes_, other.size_bytes_);
  }

  const Context* context_ = nullptr;
  CUdeviceptr pointer_ = 0;
  std::size_t size_bytes_ = 0;
};

/// Pinned host memory that the card can read and write.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  static Result<PinnedBuffer> allocate(const Context& context, std::size_t size_bytes);
  PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedBuffer();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  void swap(PinnedBuffer& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
  }

  const Context* context_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

class Stream {
 public:
  enum class Priority { Normal, High };
  static Result<Stream> create(const Context& context, Priority priority);
  Stream(Stream&& other) noexcept
      : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();
  CUstream get() const { return handle_; }

 private:
  Stream(const Context& context, CUstream handle) : context_(&context), handle_(handle) {}
  const Context* context_;
  CUstream handle_;
};

/// Reports when the work enqueued before it in a stream is done.
class Event {
 public:
  static Result<Event> create(const Context& context);
  Event(Event&& other) noexcept
      : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event();
  CUevent get() const { return handle_; }

 private:
  Event(const Context& context, CUevent handle) : context_(&context), handle_(handle) {}
  const Context* context_;
  CUevent handle_;
};

}  // namespace leasehold::cuda
