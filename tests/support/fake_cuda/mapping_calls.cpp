/// Virtual memory: allocations that processes export, import and map at chosen addresses.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/support/fake_cuda/address_space.hpp"
#include "tests/support/fake_cuda/card_memory.hpp"
#include "tests/support/fake_cuda/entry.hpp"

using namespace leasehold::fake_cuda;

namespace {

constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

bool is_granular(std::size_t bytes) {
  return bytes % kGranularity == 0;
}

bool is_ours(const CUmemAllocationProp* prop) {
  return prop != nullptr && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id == 0 &&
         (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0;
}

CUmemGenericAllocationHandle keep(MemoryHandle handle) {
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  const auto number = ++space.newest_handle;
  space.handles.emplace(number, std::move(handle));
  return number;
}

int protection_of(const CUmemAccessDesc& access) {
  switch (access.flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
      return PROT_READ;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
      return PROT_READ | PROT_WRITE;
    default:
      return PROT_NONE;
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetAllocationGranularity(std::size_t* granularity,
                                               const CUmemAllocationProp* prop,
                                               CUmemAllocationGranularity_flags) {
  FAKE_CUDA_ENTER(cuMemGetAllocationGranularity, Device);
  if (!is_ours(prop)) return CUDA_ERROR_INVALID_VALUE;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size_bytes,
                             const CUmemAllocationProp* prop, unsigned long long flags) {
  FAKE_CUDA_ENTER(cuMemCreate, Device);
  if (!is_ours(prop) || flags != 0 || size_bytes == 0 || !is_granular(size_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  NewMemory memory = allocate(size_bytes);
  if (memory.result != CUDA_SUCCESS) return memory.result;
  *handle = keep({.fd = std::move(memory.fd),
                  .size_bytes = size_bytes,
                  .exportable = prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE});
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKE_CUDA_ENTER(cuMemRelease, Device);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  return space.handles.erase(handle) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags) {
  FAKE_CUDA_ENTER(cuMemExportToShareableHandle, Device);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  const auto at = space.handles.find(handle);
  if (at == space.handles.end() || !at->second.exportable || flags != 0 ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  auto copy = at->second.fd.duplicate();
  if (!copy) return CUDA_ERROR_OPERATING_SYSTEM;
  ::fcntl(copy->get(), F_SETFD, 0);  // the driver does not promise close-on-exec
  *static_cast<int*>(shareable) = copy->release();
  return CUDA_SUCCESS;
}

/// Like the driver, leaves the descriptor to the caller.
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                void* os_handle, CUmemAllocationHandleType type) {
  FAKE_CUDA_ENTER(cuMemImportFromShareableHandle, Device);
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  struct stat status{};
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !is_card_memory(fd) ||
      ::fstat(fd, &status) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  leasehold::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return CUDA_ERROR_OPERATING_SYSTEM;
  *handle = keep({.fd = std::move(copy),
                  .size_bytes = static_cast<std::size_t>(status.st_size),
                  .exportable = true});
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* at, std::size_t size_bytes, std::size_t alignment,
                                     CUdeviceptr, unsigned long long flags) {
  FAKE_CUDA_ENTER(cuMemAddressReserve, Device);
  if (size_bytes == 0 || !is_granular(size_bytes) || flags != 0 ||
      (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t aligned = std::max(alignment, kGranularity);
  void* const mapped = ::mmap(nullptr, size_bytes + aligned, PROT_NONE, kReserved, -1, 0);
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t first = (begin + aligned - 1) / aligned * aligned;
  if (first > begin) ::munmap(mapped, first - begin);
  if (first < begin + aligned) ::munmap(pointer(first + size_bytes), begin + aligned - first);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  space.reserved.add(first, size_bytes);
  *at = first;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr at, std::size_t size_bytes) {
  FAKE_CUDA_ENTER(cuMemAddressFree, Device);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  if (space.reserved.size_at(at) != size_bytes || space.mapped.overlaps(at, size_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  space.reserved.remove(at);
  ::munmap(pointer(at), size_bytes);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr at, std::size_t size_bytes, std::size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
  FAKE_CUDA_ENTER(cuMemMap, Device);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  const auto found = space.handles.find(handle);
  if (found != space.handles.end() && size_bytes > found->second.size_bytes)
    return CUDA_ERROR_NOT_SUPPORTED;  // as driver 580 does
  if (found == space.handles.end() || flags != 0 || offset != 0 || !is_granular(at) ||
      size_bytes != found->second.size_bytes || !space.reserved.cover(at, size_bytes) ||
      space.mapped.overlaps(at, size_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (::mmap(pointer(at), size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.fd.get(),
             0) == MAP_FAILED)
    return CUDA_ERROR_OPERATING_SYSTEM;
  space.mapped.add(at, size_bytes);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr at, std::size_t size_bytes) {
  FAKE_CUDA_ENTER(cuMemUnmap, Device);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  if (size_bytes == 0 || !space.mapped.are_exactly(at, size_bytes)) return CUDA_ERROR_INVALID_VALUE;
  ::mmap(pointer(at), size_bytes, PROT_NONE, kReserved | MAP_FIXED, -1, 0);
  for (std::uintptr_t next = at; next < at + size_bytes;) {
    const std::size_t size = space.mapped.size_at(next);
    space.mapped.remove(next);
    next += size;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr at, std::size_t size_bytes,
                                const CUmemAccessDesc* access, std::size_t count) {
  FAKE_CUDA_ENTER(cuMemSetAccess, Device);
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  if (access == nullptr || count != 1 || access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      access->location.id != 0 || !space.mapped.are_exactly(at, size_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return ::mprotect(pointer(at), size_bytes, protection_of(*access)) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_OPERATING_SYSTEM;
}
}
