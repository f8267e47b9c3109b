/// The CUDA driver, reached by entry points and never linked.
///
/// A program that may meet no driver asks for one at run time: `load_driver` opens libcuda.so.1 and
/// looks every function up under the very name this toolkit's header gives it, so a driver that is
/// too old is found out at once, and not in the middle of a step. Tests put a library of the same
/// name in front of it (tests/support/fake_cuda).
///
/// Source: CUDA Driver API reference. Lifetime: the driver stays loaded until the process ends.
/// Threads: any; contexts are current per thread (CudaContext).
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

#include "common/result.hpp"

// Conditional nodes came with 12.4. Without them graphs are gated between replays only.
#define LEASEHOLD_CUDA_CONDITIONAL_NODES (CUDA_VERSION >= 12040)

// Every function of the driver that Leasehold calls.
#define LEASEHOLD_CUDA_FUNCTIONS(ENTRY) \
  ENTRY(cuInit)                         \
  ENTRY(cuDriverGetVersion)             \
  ENTRY(cuGetErrorName)                 \
  ENTRY(cuGetErrorString)               \
  ENTRY(cuDeviceGetCount)               \
  ENTRY(cuDeviceGet)                    \
  ENTRY(cuDeviceGetName)                \
  ENTRY(cuDeviceGetUuid)                \
  ENTRY(cuDeviceGetAttribute)           \
  ENTRY(cuDevicePrimaryCtxRetain)       \
  ENTRY(cuDevicePrimaryCtxRelease)      \
  ENTRY(cuCtxSetCurrent)                \
  ENTRY(cuCtxSynchronize)               \
  ENTRY(cuMemGetInfo)                   \
  ENTRY(cuMemAlloc)                     \
  ENTRY(cuMemFree)                      \
  ENTRY(cuMemHostAlloc)                 \
  ENTRY(cuMemFreeHost)                  \
  ENTRY(cuMemHostRegister)              \
  ENTRY(cuMemHostUnregister)            \
  ENTRY(cuMemcpyHtoDAsync)              \
  ENTRY(cuMemcpyDtoHAsync)              \
  ENTRY(cuMemcpyDtoDAsync)              \
  ENTRY(cuMemsetD8Async)                \
  ENTRY(cuMemGetAllocationGranularity)  \
  ENTRY(cuMemCreate)                    \
  ENTRY(cuMemRelease)                   \
  ENTRY(cuMemExportToShareableHandle)   \
  ENTRY(cuMemImportFromShareableHandle) \
  ENTRY(cuMemAddressReserve)            \
  ENTRY(cuMemAddressFree)               \
  ENTRY(cuMemMap)                       \
  ENTRY(cuMemUnmap)                     \
  ENTRY(cuMemSetAccess)                 \
  ENTRY(cuStreamCreateWithPriority)     \
  ENTRY(cuStreamDestroy)                \
  ENTRY(cuStreamSynchronize)            \
  ENTRY(cuStreamWaitEvent)              \
  ENTRY(cuEventCreate)                  \
  ENTRY(cuEventDestroy)                 \
  ENTRY(cuEventRecord)                  \
  ENTRY(cuEventQuery)                   \
  ENTRY(cuEventSynchronize)             \
  ENTRY(cuModuleLoadData)               \
  ENTRY(cuModuleUnload)                 \
  ENTRY(cuModuleGetFunction)            \
  ENTRY(cuFuncSetAttribute)             \
  ENTRY(cuFuncGetAttribute)             \
  ENTRY(cuLaunchKernel)                 \
  ENTRY(cuGraphCreate)                  \
  ENTRY(cuGraphDestroy)                 \
  ENTRY(cuGraphAddKernelNode)           \
  ENTRY(cuGraphInstantiateWithFlags)    \
  ENTRY(cuGraphExecDestroy)             \
  ENTRY(cuGraphUpload)                  \
  ENTRY(cuGraphLaunch)

#if LEASEHOLD_CUDA_CONDITIONAL_NODES
// What only newer drivers have; null where it is missing.
#define LEASEHOLD_CUDA_OPTIONAL_FUNCTIONS(ENTRY) \
  ENTRY(cuEventElapsedTime)                      \
  ENTRY(cuGraphConditionalHandleCreate)          \
  ENTRY(cuGraphAddNode)
#else
#define LEASEHOLD_CUDA_OPTIONAL_FUNCTIONS(ENTRY) ENTRY(cuEventElapsedTime)
#endif

namespace leasehold::cuda {

/// The entry points, by the names of cuda.h. The header renames some of them (cuMemAlloc is
/// cuMemAlloc_v2); so do these members, and the lookup.
struct Driver {
  // NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses): names of the driver's
#define LEASEHOLD_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  LEASEHOLD_CUDA_FUNCTIONS(LEASEHOLD_CUDA_MEMBER)
  LEASEHOLD_CUDA_OPTIONAL_FUNCTIONS(LEASEHOLD_CUDA_MEMBER)
#undef LEASEHOLD_CUDA_MEMBER
  // NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)

  bool has_conditional_nodes() const;
};

/// Loads and initialises the driver. Errors: NoDevice when there is none, or none that has a card;
/// DeviceUnsupported when it lacks an entry point. Each says what to do next.
Result<const Driver*> load_driver();

/// "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
std::string describe(const Driver& driver, CUresult result);

/// What a failed call means to us: OutOfMemory, DeviceUnsupported (no code for this card, an image
/// the driver does not take), DeviceFault for everything after which the context is of no use,
/// SystemError for the rest.
Errc errc_of(CUresult result);

/// Success, or the error of `call` with what was being done.
Result<void> check(const Driver& driver, CUresult result, std::string_view doing);

}  // namespace leasehold::cuda
