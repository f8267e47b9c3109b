/// Another process that holds memory of the card until it is killed.
///
///   fake_cuda_peer create MIB          allocates, does not map
///   fake_cuda_peer import FD           imports memory, maps it, writes a word
///   fake_cuda_peer again MIB           allocates, fails to allocate the same size again, releases,
///                                      allocates
///
/// Prints a line when done, then waits for the end of its stdin.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ipc/cuda/driver.hpp"

namespace {

using leasehold::cuda::Driver;

constexpr std::size_t kMemory = std::size_t{2} << 20;

/// Returns 0 if the driver refuses.
CUmemGenericAllocationHandle create(const Driver& driver, std::size_t mib) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUmemGenericAllocationHandle handle = 0;
  return driver.cuMemCreate(&handle, mib << 20, &prop, 0) == CUDA_SUCCESS ? handle : 0;
}

bool create_again(const Driver& driver, std::size_t mib) {
  const CUmemGenericAllocationHandle first = create(driver, mib);
  return first != 0 && create(driver, mib) == 0 && driver.cuMemRelease(first) == CUDA_SUCCESS &&
         create(driver, mib) != 0;
}

/// Keeps the mapping; releases the handle and closes the descriptor.
bool import(const Driver& driver, int fd) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  const CUmemAccessDesc access{.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const bool done = driver.cuMemImportFromShareableHandle(
                        // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's address type
                        &handle, reinterpret_cast<void*>(std::intptr_t{fd}),
                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS &&
                    driver.cuMemAddressReserve(&at, kMemory, 0, 0, 0) == CUDA_SUCCESS &&
                    driver.cuMemMap(at, kMemory, 0, handle, 0) == CUDA_SUCCESS &&
                    driver.cuMemSetAccess(at, kMemory, &access, 1) == CUDA_SUCCESS &&
                    driver.cuMemRelease(handle) == CUDA_SUCCESS;
  ::close(fd);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's address type
  if (done) *reinterpret_cast<std::uint32_t*>(at) = 4711;
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  const auto driver = leasehold::cuda::load_driver();
  if (!driver || argc != 3) {
    std::puts(driver ? "usage: fake_cuda_peer create MIB, import FD or again MIB"
                     : driver.error().detail.c_str());
    return 2;
  }
  const int number = std::atoi(argv[2]);
  const std::string_view what = argv[1];
  const auto mib = static_cast<std::size_t>(number);
  const bool done = what == "create"  ? create(**driver, mib) != 0
                    : what == "again" ? create_again(**driver, mib)
                                      : import(**driver, number);
  std::puts(done ? "done" : "refused");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
