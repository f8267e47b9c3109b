/// Modules, functions, and launches that wait in a stream or a graph.
///
/// Lifetime: functions live as long as the process, so queued launches may outlive their module.
/// Threads: any.
#pragma once

#include <cuda.h>

#include <vector>

#include "tests/support/fake_cuda/executor.hpp"
#include "tests/support/simt/runner.hpp"

namespace leasehold::fake_cuda {

/// Static shared memory counted for every kernel, whatever its `__shared__` arrays need.
constexpr int kStaticSharedBytes = 1024;

struct Function {
  const simt::Kernel* kernel = nullptr;
  int max_dynamic_shared = 48 * 1024 - kStaticSharedBytes;
  bool unloaded = false;
};

/// A checked launch; the parameters are copied.
struct LaunchPlan {
  CUresult result = CUDA_SUCCESS;
  const simt::Kernel* kernel = nullptr;
  cuda::GridSize grid;
  unsigned threads = 0;
  std::size_t shared_bytes = 0;
  std::vector<std::byte> params;
  bool overlaps = false;  ///< It may start before the launch before it has ended.
};

/// Checks a launch as the driver does; `result` holds the error.
LaunchPlan plan_launch(const CUDA_KERNEL_NODE_PARAMS& params);

/// The launch as an item of a stream.
Item item_of(LaunchPlan plan);

}  // namespace leasehold::fake_cuda
