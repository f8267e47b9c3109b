/// The driver checks modules, functions and launches.
#include <array>
#include <catch2/catch.hpp>

#include "tests/unit/support/fake_cuda/card.hpp"

namespace leasehold::fake_cuda {
namespace {

CUresult launch(const Card& card, const char* name, std::uint32_t value, unsigned threads,
                unsigned shared_bytes = 0) {
  Entry entry{.log = card.device_log(), .value = value};
  void* params[] = {&entry};
  return card.driver().cuLaunchKernel(card.function(name), 1, 1, 1, threads, 1, 1, shared_bytes,
                                      card.stream(), params, nullptr);
}

TEST_CASE("fake_cuda: an image is our stub text or a fatbin, and contains the linked kernels") {
  const Card card;
  const cuda::Driver& driver = card.driver();
  CUmodule module = nullptr;
  const std::array<std::uint32_t, 8> fatbin{0xBA55'ED50};
  const std::array<std::uint32_t, 8> nothing{};
  CHECK(driver.cuModuleLoadData(&module, nothing.data()) == CUDA_ERROR_INVALID_IMAGE);
  REQUIRE(driver.cuModuleLoadData(&module, fatbin.data()) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  CHECK(driver.cuModuleGetFunction(&function, module, "lh_trace_none") == CUDA_ERROR_NOT_FOUND);
  REQUIRE(driver.cuModuleGetFunction(&function, module, "lh_trace_append") == CUDA_SUCCESS);
  int threads = 0;
  CHECK(driver.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function) ==
        CUDA_SUCCESS);
  CHECK(threads == 32);
  REQUIRE(driver.cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(driver.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function) ==
        CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("fake_cuda: completed kernels are counted by name") {
  Card card;
  const std::uint64_t before = fake_cuda_kernel_count("lh_trace_append");
  const std::uint64_t all = fake_cuda_kernel_count(nullptr);
  card.append(1);
  card.append(2);
  CHECK(card.log().size() == 2);
  CHECK(fake_cuda_kernel_count("lh_trace_append") == before + 2);
  CHECK(fake_cuda_kernel_count(nullptr) == all + 2);
}

TEST_CASE("fake_cuda: more than 48 KiB of shared memory needs an opt-in") {
  const Card card;
  constexpr unsigned kMuch = 100 * 1024;
  CHECK(launch(card, "lh_trace_shared", 0, 32, kMuch) == CUDA_ERROR_INVALID_VALUE);
  CHECK(card.driver().cuFuncSetAttribute(card.function("lh_trace_shared"),
                                         CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         kMuch) == CUDA_SUCCESS);
  CHECK(launch(card, "lh_trace_shared", 0, 32, kMuch) == CUDA_SUCCESS);
  CHECK(card.driver().cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("fake_cuda: a block larger than the kernel allows is refused") {
  const Card card;
  CHECK(launch(card, "lh_trace_append", 1, 64) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("fake_cuda: a kernel that cannot end loses the device") {
  const Card card;
  REQUIRE(launch(card, "lh_trace_stuck", 7, 32) == CUDA_SUCCESS);
  CHECK(card.driver().cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(card.driver().cuStreamSynchronize(card.stream()) == CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace
}  // namespace leasehold::fake_cuda
