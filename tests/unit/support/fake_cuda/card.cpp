#include "tests/unit/support/fake_cuda/card.hpp"

#include <catch2/catch.hpp>

namespace leasehold::fake_cuda {
namespace {

constexpr std::size_t kLogBytes = 4096;

/// Sets the environment before the driver reads it.
struct Environment {
  Environment() { ::setenv("FAKE_CUDA_STATE", state.path().c_str(), 1); }
  testing::CardState state;
};
const Environment environment;

}  // namespace

const testing::CardState& card_state() {
  return environment.state;
}

Card::Card() {
  const auto loaded = cuda::load_driver();
  if (!loaded) FAIL(loaded.error().detail);
  driver_ = *loaded;
  CUdevice device = 0;
  REQUIRE(driver_->cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  REQUIRE(driver_->cuDevicePrimaryCtxRetain(&context_, device) == CUDA_SUCCESS);
  REQUIRE(driver_->cuCtxSetCurrent(context_) == CUDA_SUCCESS);
  REQUIRE(driver_->cuModuleLoadData(&module_, "leasehold-kernels") == CUDA_SUCCESS);
  stream_ = new_stream();
  REQUIRE(driver_->cuMemAlloc(&log_, kLogBytes) == CUDA_SUCCESS);
  REQUIRE(driver_->cuMemsetD8Async(log_, 0, kLogBytes, stream_) == CUDA_SUCCESS);
  REQUIRE(driver_->cuStreamSynchronize(stream_) == CUDA_SUCCESS);
}

Card::~Card() {
  fake_cuda_restore_device();
  fake_cuda_release();
  for (CUstream stream : more_streams_) driver_->cuStreamDestroy(stream);
  driver_->cuMemFree(log_);
  driver_->cuModuleUnload(module_);
  driver_->cuDevicePrimaryCtxRelease(0);
}

CUfunction Card::function(const char* name) const {
  CUfunction function = nullptr;
  REQUIRE(driver_->cuModuleGetFunction(&function, module_, name) == CUDA_SUCCESS);
  return function;
}

CUstream Card::new_stream(int priority) {
  CUstream stream = nullptr;
  REQUIRE(driver_->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority) ==
          CUDA_SUCCESS);
  more_streams_.push_back(stream);
  return stream;
}

CUresult Card::append(std::uint32_t value, CUstream stream) {
  Entry entry{.log = device_log(), .value = value};
  void* params[] = {&entry};
  return driver_->cuLaunchKernel(function("lh_trace_append"), 1, 1, 1, 32, 1, 1, 0, stream, params,
                                 nullptr);
}

CUDA_KERNEL_NODE_PARAMS Card::node(CUfunction function, void** params) const {
  return {.func = function,
          .gridDimX = 1,
          .gridDimY = 1,
          .gridDimZ = 1,
          .blockDimX = 32,
          .blockDimY = 1,
          .blockDimZ = 1,
          .sharedMemBytes = 0,
          .kernelParams = params,
          .extra = nullptr,
          .kern = nullptr,
          .ctx = nullptr};
}

std::vector<std::uint32_t> Card::log() const {
  REQUIRE(driver_->cuCtxSynchronize() == CUDA_SUCCESS);
  return log_so_far();
}

std::vector<std::uint32_t> Card::log_so_far() const {
  const std::uint32_t* const log = device_log();
  return {log + 1, log + 1 + log[0]};
}

std::size_t Card::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(driver_->cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  return free;
}

CUmemAllocationProp Card::memory() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}

}  // namespace leasehold::fake_cuda
