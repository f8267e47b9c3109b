/// Zeroes device memory with the card's copy engine, by copies from pinned host memory that holds
/// zeros, in a stream of its own. A memset is a kernel, which waits for a multiprocessor that the
/// worker's kernels occupy. If host memory cannot be pinned, the cleaner uses a memset.
///
/// Lifetime: the context outlives the cleaner. Threads: one at a time. Errors: those of
/// cuda::check.
/// Source: CUDA Driver API reference, cuMemcpyHtoDAsync.
#pragma once

#include "ipc/cuda/device_memory.hpp"

namespace leasehold::cuda {

class MemoryCleaner {
 public:
  static Result<MemoryCleaner> create(const Context& context);

  MemoryCleaner(MemoryCleaner&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        stream_(other.stream_),
        zeros_(other.zeros_) {}
  MemoryCleaner& operator=(MemoryCleaner&&) = delete;
  ~MemoryCleaner();

  /// Zeroes every byte and waits until that is done. Precondition: no kernel or copy uses the
  /// memory.
  Result<void> clear(const DeviceMemory& memory) const;

 private:
  explicit MemoryCleaner(const Context& context) : context_(&context) {}
  CUresult enqueue(CUdeviceptr begin, std::size_t size_bytes) const;

  const Context* context_;  // null after a move
  CUstream stream_ = nullptr;
  void* zeros_ = nullptr;  // kZeroBytes of pinned host memory; null: use a memset
};

}  // namespace leasehold::cuda
