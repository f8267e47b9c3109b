/// Runs kernels thread by thread on the CPU: what a card does, in an order that tests can choose.
///
/// Every thread of a block is a fiber; fibers change only where threads wait for each other. Blocks
/// run one after the other, each with its dynamic shared memory full of NaNs. What a card would
/// hang on, or leave undefined, is an error that names kernel and block: a barrier that some thread
/// never reaches, a shuffle from a lane that is not there, shared memory written past its end.
///
/// Not modelled: what `__shared__` arrays hold at first (they keep what the block before left), two
/// blocks at the same time (a kernel that waits for another block stalls, and is told so), weak
/// memory.
///
/// Lifetime: kernels register before main and stay. Threads: `run` from any; one kernel at a time
/// runs in a process, others wait. Errors: DeviceFault, with a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/cuda/kernel_launch.hpp"

namespace leasehold::simt {

/// What LEASEHOLD_KERNEL makes known.
struct Kernel {
  const char* name = nullptr;
  std::size_t params_bytes = 0;
  unsigned max_threads = 0;                    ///< Of a block.
  void (*body)(const void* params) = nullptr;  ///< One thread's work.
};

struct Registration {
  explicit Registration(const Kernel& kernel);
};

/// Null when no kernel has that name.
const Kernel* find(std::string_view name);
std::vector<const Kernel*> all_kernels();

/// The most dynamic shared memory of a block, as on sm_90.
constexpr std::size_t kMaxSharedBytes = 227 * 1024;

/// Runs every block of the grid to its end. `params` has the kernel's params_bytes.
Result<void> run(const Kernel& kernel, cuda::GridSize grid, unsigned block_threads,
                 std::size_t dynamic_shared_bytes, const void* params);

/// The launch as plans make it, by its kernel's name.
Result<void> run(const cuda::KernelLaunch& launch);

/// 0: blocks, warps and lanes ascend. Else in an order made from the seed, so that a kernel whose
/// result depends on it gives another one. At first: what SIMT_SEED says, or 0.
void set_order_seed(std::uint64_t seed);

/// Who is told of `set_graph_condition`; null: nobody.
using ConditionHook = void (*)(std::uint64_t handle, std::uint32_t value);
void set_condition_hook(ConditionHook hook);

}  // namespace leasehold::simt
