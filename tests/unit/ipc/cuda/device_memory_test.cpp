/// Memory of a card with drivers that answer differently from the test driver.
#include <fcntl.h>

#include <catch2/catch.hpp>

#include "ipc/cuda/device_mapper.hpp"
#include "ipc/cuda/memory_cleaner.hpp"
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

TEST_CASE("device memory: addresses that are held stay reserved after the memory is unmapped") {
  const Context context = card();
  const DeviceMapper mapper(context);
  const auto map = [&] {
    const UniqueFd fd = required(required(DeviceMemory::create(context, kPiece)).export_fd());
    return required(mapper.map(required(fd.duplicate()), kPiece, MapAccess::ReadWrite));
  };
  const std::uint64_t unmapped = fake_cuda_call_count("cuMemUnmap");
  const std::uint64_t freed = fake_cuda_call_count("cuMemAddressFree");
  std::optional<LeasedMapping> first = map();
  std::shared_ptr<const void> addresses = first->addresses();
  REQUIRE(addresses != nullptr);
  first.reset();
  CHECK(fake_cuda_call_count("cuMemUnmap") == unmapped + 1);
  CHECK(fake_cuda_call_count("cuMemAddressFree") == freed);
  addresses.reset();
  CHECK(fake_cuda_call_count("cuMemAddressFree") == freed + 1);
  map();  // without another holder both end together
  CHECK(fake_cuda_call_count("cuMemUnmap") == unmapped + 2);
  CHECK(fake_cuda_call_count("cuMemAddressFree") == freed + 2);
}

TEST_CASE("device memory: it is cleared by copies, and by a memset if zeros cannot be pinned") {
  constexpr std::size_t kSize = 3 * kPiece;
  const Context context = card();
  const bool has_zeros = GENERATE(true, false);
  CAPTURE(has_zeros);
  if (!has_zeros) fake_cuda_fail_next("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  const MemoryCleaner cleaner = required(MemoryCleaner::create(context));
  const DeviceMemory memory = required(DeviceMemory::create(context, kSize));
  const DeviceMapping mapping = required(DeviceMapping::map(memory, MapAccess::ReadWrite));
  const auto bytes = [&] {
    std::vector<std::uint8_t> read(kSize);
    CHECK(context.driver().cuMemcpyDtoHAsync(read.data(), mapping.address(), kSize, nullptr) ==
          CUDA_SUCCESS);
    return read;
  };
  const std::vector<std::uint8_t> zeros(kSize);
  CHECK(bytes() != zeros);
  const std::uint64_t copies = fake_cuda_call_count("cuMemcpyHtoDAsync");
  const std::uint64_t memsets = fake_cuda_call_count("cuMemsetD8Async");
  CHECK(cleaner.clear(memory));
  CHECK(bytes() == zeros);
  CHECK(fake_cuda_call_count("cuMemcpyHtoDAsync") - copies == (has_zeros ? 3 : 0));
  CHECK(fake_cuda_call_count("cuMemsetD8Async") - memsets == (has_zeros ? 0 : 1));
}

TEST_CASE("device memory: a failure while it is cleared is an error, and the mapping ends") {
  const Context context = card();
  const MemoryCleaner cleaner = required(MemoryCleaner::create(context));
  const DeviceMemory memory = required(DeviceMemory::create(context, kPiece));
  const std::uint64_t mapped = fake_cuda_call_count("cuMemMap");
  const std::uint64_t unmapped = fake_cuda_call_count("cuMemUnmap");
  fake_cuda_fail_next("cuMemcpyHtoDAsync", CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cleaner.clear(memory).error().code == Errc::DeviceFault);
  CHECK(fake_cuda_call_count("cuMemMap") - mapped == 1);
  CHECK(fake_cuda_call_count("cuMemUnmap") - unmapped == 1);
}

}  // namespace leasehold::cuda
