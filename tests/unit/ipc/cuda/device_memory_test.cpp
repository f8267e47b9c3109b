/// Memory of a card with drivers that answer differently from the test driver.
#include <fcntl.h>

#include <catch2/catch.hpp>

#include "ipc/cuda/device_memory.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/leased_memory.hpp"

namespace leasehold::cuda {
namespace {

using testing::required;

constexpr std::size_t kPiece = std::size_t{2} << 20;

Context card() {
  return required(Context::retain(*required(load_driver()), 0));
}

}  // namespace

TEST_CASE("device memory: its descriptor is close-on-exec") {
  const Context context = card();
  const UniqueFd fd = required(required(DeviceMemory::create(context, kPiece)).export_fd());
  CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("device memory: a foreign descriptor is untrusted for every driver error") {
  const Context context = card();
  const UniqueFd fd = required(required(DeviceMemory::create(context, kPiece)).export_fd());
  const CUresult result =
      GENERATE(CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_DEVICE,
               CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_UNKNOWN);
  fake_cuda_fail_next("cuMemImportFromShareableHandle", result);
  CHECK(DeviceMemory::import(context, fd, kPiece).error().code == Errc::UntrustedSegment);
  CHECK(DeviceMemory::import(context, fd, kPiece));
}

TEST_CASE("device memory: other driver errors are passed on") {
  const Context context = card();
  const UniqueFd fd = required(required(DeviceMemory::create(context, kPiece)).export_fd());
  fake_cuda_fail_next("cuMemImportFromShareableHandle", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(DeviceMemory::import(context, fd, kPiece).error().code == Errc::OutOfMemory);
  fake_cuda_fail_next("cuMemImportFromShareableHandle", CUDA_ERROR_NOT_SUPPORTED);
  CHECK(DeviceMemory::import(context, fd, kPiece).error().code == Errc::DeviceUnsupported);
}

TEST_CASE("device memory: a read-only mapping needs no read-only access of the driver") {
  const Context context = card();
  const DeviceMemory memory = required(DeviceMemory::create(context, kPiece));
  const CUresult result =
      GENERATE(CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_PERMITTED);
  fake_cuda_fail_next("cuMemSetAccess", result);
  CHECK(DeviceMapping::map(memory, MapAccess::ReadOnly));
  fake_cuda_fail_next("cuMemSetAccess", result);
  CHECK_FALSE(DeviceMapping::map(memory, MapAccess::ReadWrite));
}

}  // namespace leasehold::cuda
