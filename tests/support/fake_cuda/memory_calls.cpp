/// cuMemAlloc and related calls, and host memory.
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <cstdlib>

#include "tests/support/fake_cuda/address_space.hpp"
#include "tests/support/fake_cuda/card_memory.hpp"
#include "tests/support/fake_cuda/entry.hpp"
#include "tests/support/fake_cuda/executor.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/host_mappings.hpp"

using namespace leasehold::fake_cuda;

namespace {

constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t size_bytes) {
  return (size_bytes + kPage - 1) / kPage * kPage;
}

/// Maps the file with a page behind it that faults.
void* map_guarded(int fd, std::size_t size_bytes) {
  void* const at = ::mmap(nullptr, size_bytes + kPage, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return at;
  return ::mmap(at, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
}

std::uintptr_t address_of(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

/// Whether one mapping of the process holds the range, with the access that a registration needs.
bool is_registrable(const void* at, std::size_t size_bytes, unsigned flags) {
  const auto mapping = leasehold::testing::host_mapping_at(address_of(at));
  const bool is_read_only = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  return mapping && mapping->contains(address_of(at), size_bytes) && mapping->is_readable &&
         (mapping->is_writable || is_read_only);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  FAKE_CUDA_ENTER(cuMemGetInfo, Context);
  *total = card().memory_bytes;
  const std::size_t used = used_bytes();
  *free_bytes = used > *total ? 0 : *total - used;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* at, std::size_t size_bytes) {
  FAKE_CUDA_ENTER(cuMemAlloc, Context);
  if (size_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t rounded = whole_pages(size_bytes);
  const NewMemory memory = allocate(rounded);
  if (memory.result != CUDA_SUCCESS) return memory.result;
  // The mapping alone keeps the memory alive.
  void* const mapped = map_guarded(memory.fd.get(), rounded);
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  space.allocated.add(address_of(mapped), size_bytes);
  // Poisons the rest of the last page, except the 16 aligned bytes that a kernel may partly need.
  const std::size_t readable = (size_bytes + 15) / 16 * 16;
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(mapped) + readable, rounded - readable);
  *at = address_of(mapped);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr at) {
  FAKE_CUDA_ENTER(cuMemFree, Context);
  if (at == 0) return CUDA_SUCCESS;
  // Like the driver: queued work may still use it.
  Executor::get().wait_empty(nullptr);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  const std::size_t size_bytes = space.allocated.size_at(at);
  if (!space.allocated.remove(at)) return CUDA_ERROR_INVALID_VALUE;
  void* const mapped = reinterpret_cast<void*>(at);
  // The next mapping at this address must not inherit the poison.
  ASAN_UNPOISON_MEMORY_REGION(mapped, whole_pages(size_bytes));
  ::munmap(mapped, whole_pages(size_bytes) + kPage);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void** at, std::size_t size_bytes, unsigned flags) {
  FAKE_CUDA_ENTER(cuMemHostAlloc, Context);
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (size_bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (::posix_memalign(at, kPage, size_bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  space.host.add(address_of(*at), size_bytes);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFreeHost(void* at) {
  FAKE_CUDA_ENTER(cuMemFreeHost, Context);
  if (at == nullptr) return CUDA_SUCCESS;
  Executor::get().wait_empty(nullptr);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  if (!space.host.remove(address_of(at))) return CUDA_ERROR_INVALID_VALUE;
  std::free(at);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostRegister(void* at, std::size_t size_bytes, unsigned flags) {
  FAKE_CUDA_ENTER(cuMemHostRegister, Context);
  constexpr unsigned kKnown =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  if (at == nullptr || size_bytes == 0 || (flags & ~kKnown) != 0 ||
      !is_registrable(at, size_bytes, flags))
    return CUDA_ERROR_INVALID_VALUE;
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  if (space.registered.overlaps(address_of(at), size_bytes))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  space.registered.add(address_of(at), size_bytes);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostUnregister(void* at) {
  FAKE_CUDA_ENTER(cuMemHostUnregister, Context);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  const std::size_t size_bytes = space.registered.size_at(address_of(at));
  if (size_bytes == 0) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  space.registered.remove(address_of(at));
  const auto mapping = leasehold::testing::host_mapping_at(address_of(at));
  const bool is_mapped = mapping && mapping->contains(address_of(at), size_bytes);
  return is_mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::size_t fake_cuda_registered_count() {
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  return space.registered.count();
}
}
