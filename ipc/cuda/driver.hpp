/// The CUDA driver, called through entry points that are looked up at run time.
///
/// Programs must run on machines without a driver. `load_driver` opens libcuda.so.1 at run time and
/// looks up every function under the name of this toolkit's header, so a driver that is too old
/// fails at start and not during a step. Tests load a library of the same name instead
/// (tests/support/fake_cuda).
///
/// Source: CUDA Driver API reference. Lifetime: the driver stays loaded until the process ends.
/// Threads: any; contexts are current per thread (cuda::Context).
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

#include "common/result.hpp"

// Conditional nodes exist since 12.4. Without them a gate still precedes each segment, but after a
// refusal the segment's kernels are still launched and return at once.
#define LEASEHOLD_CUDA_CONDITIONAL_NODES (CUDA_VERSION >= 12040)
// Since 13.0, cuGraphAddNode takes data for edges. Without edge data, a kernel of a graph starts
// only when the one before it has ended.
#define LEASEHOLD_CUDA_EDGE_DATA (CUDA_VERSION >= 13000)

// Every driver function that Leasehold calls.
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
  ENTRY(cuMemcpyAsync)                  \
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
// Functions of newer drivers; null if the driver lacks them.
#define LEASEHOLD_CUDA_OPTIONAL_FUNCTIONS(ENTRY) \
  ENTRY(cuEventElapsedTime)                      \
  ENTRY(cuGraphConditionalHandleCreate)          \
  ENTRY(cuGraphAddNode)
#else
#define LEASEHOLD_CUDA_OPTIONAL_FUNCTIONS(ENTRY) ENTRY(cuEventElapsedTime)
#endif

namespace leasehold::cuda {

/// The entry points, under the names of cuda.h. The header renames some (cuMemAlloc is
/// cuMemAlloc_v2); members and lookup follow it.
struct Driver {
  // NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses): names of the driver's
#define LEASEHOLD_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  LEASEHOLD_CUDA_FUNCTIONS(LEASEHOLD_CUDA_MEMBER)
  LEASEHOLD_CUDA_OPTIONAL_FUNCTIONS(LEASEHOLD_CUDA_MEMBER)
#undef LEASEHOLD_CUDA_MEMBER
  // NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)

  bool has_conditional_nodes() const;
};

/// Loads and initialises the driver. Errors: NoDevice without a driver or a card; DeviceUnsupported
/// when an entry point is missing. Each says what to do next.
Result<const Driver*> load_driver();

/// "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
std::string describe(const Driver& driver, CUresult result);

/// The error code for a failed call: OutOfMemory; DeviceUnsupported (no kernel image for this card,
/// or an image that the driver rejects); DeviceFault for errors after which the context is
/// unusable; SystemError for the rest.
Errc errc_of(CUresult result);

/// Converts a driver result to a Result; the error names the operation.
Result<void> check(const Driver& driver, CUresult result, std::string_view doing);

}  // namespace leasehold::cuda
