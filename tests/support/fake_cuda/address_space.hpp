/// The address ranges of this process: reservations, device memory, pinned host memory.
///
/// Lifetime: never destroyed. Threads: any.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "common/machine/unique_fd.hpp"

namespace leasehold::fake_cuda {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

inline void* pointer(CUdeviceptr at) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers
  return reinterpret_cast<void*>(at);
}

/// Ranges that do not overlap, ordered by start address.
class Ranges {
 public:
  void add(std::uintptr_t at, std::size_t size_bytes) { sizes_[at] = size_bytes; }
  bool remove(std::uintptr_t at) { return sizes_.erase(at) > 0; }
  std::size_t count() const { return sizes_.size(); }
  /// Returns 0 if no range begins there.
  std::size_t size_at(std::uintptr_t at) const;
  bool overlaps(std::uintptr_t at, std::size_t size_bytes) const;
  /// Whether one range contains it.
  bool contain(std::uintptr_t at, std::size_t size_bytes) const;
  /// Whether the ranges together cover every byte of it.
  bool cover(std::uintptr_t at, std::size_t size_bytes) const;
  /// Whether the ranges that begin in it fill it exactly.
  bool are_exactly(std::uintptr_t at, std::size_t size_bytes) const;
  /// Their memory.
  std::vector<std::span<std::byte>> all() const;

 private:
  std::map<std::uintptr_t, std::size_t> sizes_;
};

struct MemoryHandle {
  UniqueFd fd;
  std::size_t size_bytes = 0;
  bool exportable = false;
};

struct AddressSpace {
  static AddressSpace& get();

  std::mutex mutex;
  Ranges reserved;
  Ranges mapped;     ///< By cuMemMap, in reservations.
  Ranges allocated;  ///< By cuMemAlloc.
  Ranges host;       ///< By cuMemHostAlloc.
  Ranges registered;
  std::map<CUmemGenericAllocationHandle, MemoryHandle> handles;
  CUmemGenericAllocationHandle newest_handle = 0;
};

/// Registered host memory counts as device memory: both share one address space, so the card uses
/// the same address.
bool is_device_memory(CUdeviceptr at, std::size_t size_bytes);
/// All of it.
std::vector<std::span<std::byte>> device_memory();
bool is_pinned(const void* at, std::size_t size_bytes);

}  // namespace leasehold::fake_cuda
