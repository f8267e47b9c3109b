#include "kernels/cuda/device_objects.hpp"

#include <fmt/format.h>

namespace leasehold::cuda {

template <>
Result<DeviceBuffer> DeviceBuffer::allocate(const Context& context, std::size_t size_bytes) {
  DeviceBuffer buffer;
  if (size_bytes == 0) return buffer;
  CUdeviceptr address = 0;
  const CUresult result = context.driver().cuMemAlloc(&address, size_bytes);
  if (result != CUDA_SUCCESS)
    return fail(errc_of(result),
                fmt::format("allocating {} bytes on the card: {}; end other programs that use "
                            "it, lower the broker's memory limit, or choose a smaller model",
                            size_bytes, describe(context.driver(), result)));
  buffer.memory_ = {context, address};
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

template <>
Result<PinnedBuffer> PinnedBuffer::allocate(const Context& context, std::size_t size_bytes) {
  PinnedBuffer buffer;
  if (size_bytes == 0) return buffer;
  void* data = nullptr;
  TRY(check(context.driver(),
            context.driver().cuMemHostAlloc(&data, size_bytes,
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
            fmt::format("pinning {} bytes of host memory", size_bytes)));
  buffer.memory_ = {context, data};
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

Result<Stream> create_stream(const Context& context, int priority) {
  CUstream handle = nullptr;
  TRY(check(context.driver(),
            context.driver().cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, priority),
            "creating a stream"));
  return Stream(context, handle);
}

Result<Event> create_event(const Context& context) {
  CUevent handle = nullptr;
  TRY(check(context.driver(), context.driver().cuEventCreate(&handle, CU_EVENT_DISABLE_TIMING),
            "creating an event"));
  return Event(context, handle);
}

}  // namespace leasehold::cuda
