/// Modules and launches. A module holds no code: every module offers all kernels that were linked.
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tests/support/fake_cuda/entry.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/fake_cuda/kernels.hpp"
#include "tests/support/fake_cuda/unfinished_writes.hpp"

using namespace leasehold::fake_cuda;

namespace leasehold::fake_cuda {
namespace {

constexpr std::uint32_t kFatbinMagic = 0xBA55'ED50;
constexpr std::string_view kTextMagic = "leasehold-kernels";

struct Modules {
  static Modules& get() {
    static auto& all = *new Modules;
    return all;
  }
  std::mutex mutex;
  std::map<CUmodule, std::map<std::string, Function*>> loaded;  ///< Functions by name.
  std::deque<Function> functions;
  std::uintptr_t newest = 0;

  Function* find(CUfunction function) {
    for (Function& one : functions) {
      if (reinterpret_cast<CUfunction>(&one) == function && !one.unloaded) return &one;
    }
    return nullptr;
  }
};

bool is_image(const void* image) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  return magic == kFatbinMagic || std::memcmp(image, kTextMagic.data(), kTextMagic.size()) == 0;
}

bool fits(const CUDA_KERNEL_NODE_PARAMS& p, const Function& function) {
  return p.gridDimX > 0 && p.gridDimY > 0 && p.gridDimZ > 0 && p.gridDimX <= 0x7FFF'FFFF &&
         p.gridDimY <= 65535 && p.gridDimZ <= 65535 && p.blockDimX > 0 && p.blockDimY == 1 &&
         p.blockDimZ == 1 && p.blockDimX <= function.kernel->max_threads &&
         p.sharedMemBytes <= static_cast<unsigned>(function.max_dynamic_shared) &&
         p.extra == nullptr && p.kernelParams != nullptr;
}

}  // namespace

LaunchPlan plan_launch(const CUDA_KERNEL_NODE_PARAMS& p) {
  Modules& modules = Modules::get();
  const std::scoped_lock lock(modules.mutex);
  const Function* const function = modules.find(p.func);
  LaunchPlan plan;
  if (function == nullptr) {
    plan.result = CUDA_ERROR_INVALID_HANDLE;
  } else if (!fits(p, *function)) {
    plan.result = CUDA_ERROR_INVALID_VALUE;
  } else {
    plan.kernel = function->kernel;
    plan.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
    plan.threads = p.blockDimX;
    plan.shared_bytes = p.sharedMemBytes;
    const auto* const bytes = static_cast<const std::byte*>(p.kernelParams[0]);
    plan.params.assign(bytes, bytes + function->kernel->params_bytes);
  }
  return plan;
}

Item item_of(LaunchPlan plan) {
  std::string name = plan.kernel->name;
  auto work = [plan = std::move(plan)] {
    UnfinishedWrites& unfinished = UnfinishedWrites::get();
    if (!plan.overlaps) unfinished.finish_all();
    if (plan.kernel->is_early) simt::set_predecessor(unfinished.changes());
    const auto ran =
        simt::run(*plan.kernel, plan.grid, plan.threads, plan.shared_bytes, plan.params.data());
    if (ran) return CUDA_SUCCESS;
    std::fprintf(stderr, "fake_cuda: %s\n", ran.error().detail.c_str());
    return CUDA_ERROR_LAUNCH_FAILED;
  };
  return {.work = std::move(work), .kernel = std::move(name)};
}

}  // namespace leasehold::fake_cuda

extern "C" {

void fake_cuda_hide_unfinished(bool hide) {
  UnfinishedWrites::get().set_enabled(hide);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  FAKE_CUDA_ENTER(cuModuleLoadData, Context);
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_image(image)) return CUDA_ERROR_INVALID_IMAGE;
  Modules& modules = Modules::get();
  const std::scoped_lock lock(modules.mutex);
  *module = reinterpret_cast<CUmodule>(++modules.newest);
  modules.loaded[*module];
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  FAKE_CUDA_ENTER(cuModuleUnload, Context);
  Modules& modules = Modules::get();
  const std::scoped_lock lock(modules.mutex);
  const auto at = modules.loaded.find(module);
  if (at == modules.loaded.end()) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, function] : at->second) function->unloaded = true;
  modules.loaded.erase(at);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAKE_CUDA_ENTER(cuModuleGetFunction, Context);
  Modules& modules = Modules::get();
  const std::scoped_lock lock(modules.mutex);
  const auto at = modules.loaded.find(module);
  if (at == modules.loaded.end()) return CUDA_ERROR_INVALID_HANDLE;
  const leasehold::simt::Kernel* const kernel = leasehold::simt::find(name);
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  Function*& known = at->second[name];
  if (known == nullptr) {
    known = &modules.functions.emplace_back();
    known->kernel = kernel;
  }
  *function = reinterpret_cast<CUfunction>(known);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  FAKE_CUDA_ENTER(cuFuncSetAttribute, Context);
  Modules& modules = Modules::get();
  const std::scoped_lock lock(modules.mutex);
  Function* const function = modules.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      value > static_cast<int>(leasehold::simt::kMaxSharedBytes) - kStaticSharedBytes)
    return CUDA_ERROR_INVALID_VALUE;
  function->max_dynamic_shared = value;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  FAKE_CUDA_ENTER(cuFuncGetAttribute, Context);
  Modules& modules = Modules::get();
  const std::scoped_lock lock(modules.mutex);
  const Function* const function = modules.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(function->kernel->max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->max_dynamic_shared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = kStaticSharedBytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = card().compute_capability;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return CUDA_SUCCESS;
  }
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, CUstream stream,
                                void** params, void** extra) {
  FAKE_CUDA_ENTER(cuLaunchKernel, Context);
  Stream* const to = stream_of(stream);
  if (to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LaunchPlan plan = plan_launch({.func = function,
                                 .gridDimX = grid_x,
                                 .gridDimY = grid_y,
                                 .gridDimZ = grid_z,
                                 .blockDimX = block_x,
                                 .blockDimY = block_y,
                                 .blockDimZ = block_z,
                                 .sharedMemBytes = shared_bytes,
                                 .kernelParams = params,
                                 .extra = extra,
                                 .kern = nullptr,
                                 .ctx = nullptr});
  if (plan.result != CUDA_SUCCESS) return plan.result;
  Executor::get().queue(to, item_of(std::move(plan)));
  return CUDA_SUCCESS;
}
}
