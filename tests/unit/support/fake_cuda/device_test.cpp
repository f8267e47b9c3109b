/// The card reports its properties, and fails when a test plants a failure.
#include <catch2/catch.hpp>

#include "tests/unit/support/fake_cuda/card.hpp"

namespace leasehold::fake_cuda {
namespace {

int attribute(const Card& card, CUdevice_attribute which) {
  int value = -1;
  REQUIRE(card.driver().cuDeviceGetAttribute(&value, which, 0) == CUDA_SUCCESS);
  return value;
}

TEST_CASE("fake_cuda: the driver finds a card of compute capability 9.0") {
  const Card card;
  char name[32] = {};
  CHECK(card.driver().cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS);
  CHECK(std::string(name) == "Fake H200");
  CHECK(attribute(card, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9);
  CHECK(attribute(card, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 0);
  CHECK(attribute(card, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == 4);
  CHECK(attribute(card, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 227 * 1024);
  CHECK(attribute(card, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1);
  CHECK(card.driver().has_conditional_nodes());
}

TEST_CASE("fake_cuda: an allocation larger than the card fails") {
  const Card card;
  CUdeviceptr at = 0;
  CHECK(card.driver().cuMemAlloc(&at, card.free_bytes() + 1) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("fake_cuda: the next call of a function can be made to fail, once") {
  const Card card;
  CUdeviceptr at = 0;
  fake_cuda_fail_next("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(card.driver().cuMemAlloc(&at, 4096) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(card.driver().cuMemAlloc(&at, 4096) == CUDA_SUCCESS);
  CHECK(card.driver().cuMemFree(at) == CUDA_SUCCESS);
}

TEST_CASE("fake_cuda: on a lost device every call fails with the same error, even a waiting one") {
  Card card;
  fake_cuda_hold();
  card.append(1);
  fake_cuda_lose_device();
  CHECK(card.driver().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  std::size_t free = 0;
  std::size_t total = 0;
  CHECK(card.driver().cuMemGetInfo(&free, &total) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuda::errc_of(card.driver().cuMemGetInfo(&free, &total)) == Errc::DeviceFault);
  fake_cuda_restore_device();
  CHECK(card.log().empty());
}

TEST_CASE("fake_cuda: without a current context nothing is allocated") {
  const Card card;
  CUdeviceptr at = 0;
  REQUIRE(card.driver().cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(card.driver().cuMemAlloc(&at, 4096) == CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context = nullptr;
  REQUIRE(card.driver().cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  REQUIRE(card.driver().cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace leasehold::fake_cuda
