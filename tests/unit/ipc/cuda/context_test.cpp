/// A card in exclusive mode still reports its identity, and the last context frees everything.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>

#include "ipc/cuda/context.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"

namespace leasehold::cuda {
namespace {

const Driver& driver() {
  const auto loaded = load_driver();
  if (!loaded) FAIL(loaded.error().detail);
  return **loaded;
}

/// A property of the fake card while this object lives.
struct CardSetting {
  CardSetting(const char* name, int value) : variable(name) {
    ::setenv(name, std::to_string(value).c_str(), 1);
  }
  CardSetting(const CardSetting&) = delete;
  CardSetting& operator=(const CardSetting&) = delete;
  ~CardSetting() { ::unsetenv(variable); }
  const char* variable;
};

}  // namespace

TEST_CASE("cuda context: a card that refuses contexts still reports its identity") {
  const CardSetting closed("FAKE_CUDA_COMPUTE_MODE",
                           GENERATE(CU_COMPUTEMODE_PROHIBITED, CU_COMPUTEMODE_EXCLUSIVE_PROCESS));
  const auto uuid = uuid_of(driver(), 0);
  REQUIRE(uuid);
  CHECK(*uuid == "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe00");
  const auto context = Context::retain(driver(), 0);
  REQUIRE_FALSE(context);
  CHECK(context.error().code == Errc::DeviceUnsupported);
  CHECK(context.error().detail.find("-c DEFAULT") != std::string::npos);
}

TEST_CASE("cuda context: a card that MPS serves is refused before a context exists") {
  const CardSetting mps("FAKE_CUDA_MPS", 1);
  const std::uint64_t retained = fake_cuda_call_count("cuDevicePrimaryCtxRetain");
  const auto context = Context::retain(driver(), 0);
  REQUIRE_FALSE(context);
  CHECK(context.error().code == Errc::DeviceUnsupported);
  CHECK(context.error().detail.contains("nvidia-cuda-mps-control"));
  CHECK(fake_cuda_call_count("cuDevicePrimaryCtxRetain") == retained);
}

TEST_CASE("cuda context: a driver that does not know MPS is used, one that fails is not") {
  fake_cuda_fail_next("cuDeviceGetAttribute", CUDA_ERROR_INVALID_VALUE);
  CHECK(Context::retain(driver(), 0));
  fake_cuda_fail_next("cuDeviceGetAttribute", CUDA_ERROR_UNKNOWN);
  CHECK(Context::retain(driver(), 0).error().code == Errc::DeviceFault);
}

TEST_CASE("cuda context: another failure keeps the driver's message") {
  fake_cuda_fail_next("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(Context::retain(driver(), 0).error().code == Errc::OutOfMemory);
}

TEST_CASE("cuda context: an index past the last card is an error") {
  CHECK(uuid_of(driver(), 1).error().code == Errc::NoDevice);
  CHECK(Context::retain(driver(), -1).error().code == Errc::NoDevice);
}

TEST_CASE("cuda context: it lasts until its last owner releases it") {
  std::optional<Context> first;
  {
    auto second = Context::retain(driver(), 0);
    REQUIRE(second);
    auto retained = Context::retain(driver(), 0);
    REQUIRE(retained);
    first.emplace(*std::move(retained));
  }
  CHECK(first->memory());
  first.reset();
  std::size_t free = 0;
  std::size_t total = 0;
  const CUresult after = driver().cuMemGetInfo(&free, &total);
  CHECK(after == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(errc_of(after) == Errc::DeviceFault);
}

TEST_CASE("cuda driver: errors that only a new process survives are device faults") {
  constexpr auto kContained = static_cast<CUresult>(226);
  constexpr auto kTensorMemoryLeak = static_cast<CUresult>(721);
  for (const CUresult result : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_EXTERNAL_DEVICE,
                                CUDA_ERROR_MPS_CLIENT_TERMINATED, kContained, kTensorMemoryLeak})
    CHECK(errc_of(result) == Errc::DeviceFault);
  CHECK(errc_of(CUDA_ERROR_INVALID_PTX) == Errc::DeviceUnsupported);
  CHECK(errc_of(CUDA_ERROR_NOT_READY) == Errc::SystemError);
}

TEST_CASE("cuda driver: a forked child cannot use it") {
  const auto count = [] {
    int cards = 0;
    return static_cast<int>(driver().cuDeviceGetCount(&cards));
  };
  CHECK(count() == CUDA_SUCCESS);
  CHECK(testing::run_in_child(count).exit_code == CUDA_ERROR_NOT_INITIALIZED);
}

}  // namespace leasehold::cuda
