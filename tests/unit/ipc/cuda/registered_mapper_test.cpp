/// Host memory that is registered with a card: what the driver refuses, and when it is
/// unregistered.
#include <catch2/catch.hpp>

#include "ipc/cuda/registered_mapper.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/leased_memory.hpp"

namespace leasehold::cuda {
namespace {

using testing::required;

constexpr std::size_t kExtent = std::size_t{2} << 20;

struct Registering {
  Result<LeasedMapping> map() {
    const MemoryObject object =
        required(MemoryObject::create({.name = "swap", .size_bytes = kExtent}));
    return mapper.map(required(object.fd().duplicate()), kExtent, MapAccess::ReadWrite);
  }

  Context context = required(Context::retain(*required(load_driver()), 0));
  RegisteredMapper mapper{context};
};

}  // namespace

TEST_CASE("registered mapper: memory that the driver does not register is a typed error") {
  struct Refusal {
    CUresult result;
    Errc code;
  };
  const Refusal refusal = GENERATE(Refusal{CUDA_ERROR_OUT_OF_MEMORY, Errc::OutOfMemory},
                                   Refusal{CUDA_ERROR_NOT_SUPPORTED, Errc::DeviceUnsupported},
                                   Refusal{CUDA_ERROR_OPERATING_SYSTEM, Errc::SystemError});
  Registering scene;
  fake_cuda_fail_next("cuMemHostRegister", refusal.result);
  const Result<LeasedMapping> mapped = scene.map();
  REQUIRE_FALSE(mapped);
  CHECK(mapped.error().code == refusal.code);
  CHECK(mapped.error().detail.contains("registering 2097152 bytes of host memory with card 0"));
  CHECK(scene.map());
}

TEST_CASE("registered mapper: memory is unregistered with its mapping, once") {
  Registering scene;
  const std::uint64_t before = fake_cuda_call_count("cuMemHostUnregister");
  {
    std::optional<LeasedMapping> mapping = required(scene.map());
    const LeasedMapping moved = *std::move(mapping);
    mapping.reset();
    CHECK(fake_cuda_call_count("cuMemHostUnregister") == before);
  }
  CHECK(fake_cuda_call_count("cuMemHostUnregister") == before + 1);
}

TEST_CASE("registered mapper: a copy that outlasts its registration is a fault of the card") {
  Registering scene;
  const Driver& driver = scene.context.driver();
  CUdeviceptr on_card = 0;
  REQUIRE(driver.cuMemAlloc(&on_card, kExtent) == CUDA_SUCCESS);
  fake_cuda_hold();
  {
    const LeasedMapping mapping = required(scene.map());
    const auto at = reinterpret_cast<CUdeviceptr>(testing::address_of(mapping.base()));
    REQUIRE(driver.cuMemcpyAsync(on_card, at, kExtent, nullptr) == CUDA_SUCCESS);
  }
  fake_cuda_release();
  CHECK(driver.cuCtxSynchronize() != CUDA_SUCCESS);
  fake_cuda_restore_device();
  CHECK(driver.cuMemFree(on_card) == CUDA_SUCCESS);
}

TEST_CASE("registered mapper: a card copies only from and to memory that is registered") {
  Registering scene;
  const Driver& driver = scene.context.driver();
  CUdeviceptr on_card = 0;
  REQUIRE(driver.cuMemAlloc(&on_card, kExtent) == CUDA_SUCCESS);
  const testing::LeasedMemory plain(kExtent);
  const auto at = reinterpret_cast<CUdeviceptr>(plain.bytes());
  CHECK(driver.cuMemcpyAsync(on_card, at, kExtent, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemcpyAsync(at, on_card, kExtent, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemFree(on_card) == CUDA_SUCCESS);
}

}  // namespace leasehold::cuda
