#include "kernels/cuda/device_objects.hpp"

#include <fmt/format.h>

namespace leasehold::cuda {
namespace {

// Destructors ignore driver errors: after a fault every driver call fails and the process is about
// to end.
void ignore(CUresult) {}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::allocate(const Context& context, std::size_t size_bytes) {
  DeviceBuffer buffer;
  if (size_bytes == 0) return buffer;
  const CUresult result = context.driver().cuMemAlloc(&buffer.pointer_, size_bytes);
  if (result != CUDA_SUCCESS) {
    buffer.pointer_ = 0;
    return fail(errc_of(result),
                fmt::format("allocating {} bytes on the card: {}; end other programs that use "
                            "it, lower the broker's memory limit, or choose a smaller model",
                            size_bytes, describe(context.driver(), result)));
  }
  buffer.context_ = &context;
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (context_ != nullptr) ignore(context_->driver().cuMemFree(pointer_));
}

Result<PinnedBuffer> PinnedBuffer::allocate(const Context& context, std::size_t size_bytes) {
  PinnedBuffer buffer;
  if (size_bytes == 0) return buffer;
  void* data = nullptr;
  TRY(check(context.driver(),
            context.driver().cuMemHostAlloc(&data, size_bytes,
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
            fmt::format("pinning {} bytes of host memory", size_bytes)));
  buffer.context_ = &context;
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

PinnedBuffer::~PinnedBuffer() {
  if (context_ != nullptr) ignore(context_->driver().cuMemFreeHost(data_));
}

Result<Stream> Stream::create(const Context& context, Priority priority) {
  // The lowest number is the highest priority. The driver clamps values that are out of range.
  constexpr int kHighest = -5;
  CUstream handle = nullptr;
  TRY(check(context.driver(),
            context.driver().cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING,
                                                        priority == Priority::High ? kHighest : 0),
            "creating a stream"));
  return Stream(context, handle);
}

Stream::~Stream() {
  if (handle_ != nullptr) ignore(context_->driver().cuStreamDestroy(handle_));
}

Result<Event> Event::create(const Context& context) {
  CUevent handle = nullptr;
  TRY(check(context.driver(), context.driver().cuEventCreate(&handle, CU_EVENT_DISABLE_TIMING),
            "creating an event"));
  return Event(context, handle);
}

Event::~Event() {
  if (handle_ != nullptr) ignore(context_->driver().cuEventDestroy(handle_));
}

}  // namespace leasehold::cuda
