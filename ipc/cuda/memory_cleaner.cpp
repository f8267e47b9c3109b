#include "ipc/cuda/memory_cleaner.hpp"

#include <algorithm>
#include <cstring>

namespace leasehold::cuda {
namespace {

/// The usual size of an extent, so that one copy clears an extent.
constexpr std::size_t kZeroBytes = std::size_t{2} << 20;

}  // namespace

Result<MemoryCleaner> MemoryCleaner::create(const Context& context) {
  TRY(context.make_current());
  const Driver& driver = context.driver();
  MemoryCleaner cleaner(context);
  TRY(check(driver, driver.cuStreamCreateWithPriority(&cleaner.stream_, CU_STREAM_NON_BLOCKING, 0),
            "creating a stream"));
  const CUresult pinned =
      driver.cuMemHostAlloc(&cleaner.zeros_, kZeroBytes, CU_MEMHOSTALLOC_PORTABLE);
  if (pinned == CUDA_SUCCESS) {
    std::memset(cleaner.zeros_, 0, kZeroBytes);
  } else {
    cleaner.zeros_ = nullptr;
    if (errc_of(pinned) == Errc::DeviceFault) TRY(check(driver, pinned, "pinning zeros"));
  }
  return cleaner;
}

MemoryCleaner::~MemoryCleaner() {
  if (context_ == nullptr) return;
  (void)context_->make_current();
  if (zeros_ != nullptr) context_->driver().cuMemFreeHost(zeros_);
  if (stream_ != nullptr) context_->driver().cuStreamDestroy(stream_);
}

CUresult MemoryCleaner::enqueue(CUdeviceptr begin, std::size_t size_bytes) const {
  const Driver& driver = context_->driver();
  if (zeros_ == nullptr) return driver.cuMemsetD8Async(begin, 0, size_bytes, stream_);
  CUresult queued = CUDA_SUCCESS;
  for (std::size_t at = 0; at < size_bytes && queued == CUDA_SUCCESS; at += kZeroBytes) {
    const std::size_t n = std::min(kZeroBytes, size_bytes - at);
    queued = driver.cuMemcpyHtoDAsync(begin + at, zeros_, n, stream_);
  }
  return queued;
}

Result<void> MemoryCleaner::clear(const DeviceMemory& memory) const {
  const DeviceMapping mapping = TRY(DeviceMapping::map(memory, MapAccess::ReadWrite));
  const CUresult queued = enqueue(mapping.address(), memory.size_bytes());
  // Waits even after an error, because the mapping may end only when no copy uses it.
  const CUresult status = context_->driver().cuStreamSynchronize(stream_);
  TRY(check(context_->driver(), queued, "clearing memory"));
  return check(context_->driver(), status, "clearing memory");
}

}  // namespace leasehold::cuda
