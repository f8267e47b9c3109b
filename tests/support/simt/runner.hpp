/// Runs kernels thread by thread on the CPU, in an order that tests can choose.
///
/// Every thread of a block is a fiber; fibers switch only where threads wait for each other. Blocks
/// run one after another, each with its dynamic shared memory full of NaNs. If a card would hang or
/// its behaviour would be undefined, the result is an error that names kernel and block: a barrier
/// that some thread never reaches, a shuffle from an absent lane, a write past the end of shared
/// memory, a bulk copy that no thread waits for.
///
/// Asynchronous copies land, and await_previous_kernel returns, when every thread of the block
/// waits. With a seed whose second bit is set (2, 3, 6, 7 …) they do so at once.
///
/// Not modelled: the initial content of `__shared__` arrays (they keep the previous block's),
/// concurrent blocks (a kernel that waits for another block fails), weak memory order.
///
/// Lifetime: kernels register before main and remain. Threads: any thread may call `run`; one
/// kernel runs per process, other callers wait. Errors: DeviceFault, with a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "tests/support/simt/predecessor.hpp"

namespace leasehold::simt {

/// A kernel as LEASEHOLD_KERNEL registers it.
struct Kernel {
  const char* name = nullptr;
  std::size_t params_bytes = 0;
  unsigned max_threads = 0;                    ///< Per block.
  void (*body)(const void* params) = nullptr;  ///< Runs one thread.
  bool is_early = false;                       ///< It calls await_previous_kernel itself.
};

struct Registration {
  explicit Registration(const Kernel& kernel);
};

/// Null if no kernel has that name.
const Kernel* find(std::string_view name);
std::vector<const Kernel*> all_kernels();

/// Maximum dynamic shared memory of a block, as on sm_90.
constexpr std::size_t kMaxSharedBytes = 227 * 1024;

/// Runs every block of the grid to its end. `params` holds the kernel's params_bytes.
Result<void> run(const Kernel& kernel, cuda::GridSize grid, unsigned block_threads,
                 std::size_t dynamic_shared_bytes, const void* params);

/// Runs a planned launch by its kernel's name.
Result<void> run(const cuda::KernelLaunch& launch);

/// 0: blocks, warps and lanes ascend. Other seeds permute the order, which changes the result of a
/// kernel that depends on it. Default: SIMT_SEED, or 0.
void set_order_seed(std::uint64_t seed);
/// The seed with which blocks and warps descend.
constexpr std::uint64_t kDescendingOrder = ~std::uint64_t{0};

/// Called before the i-th block of a launch runs, so that a test can change the mirror; empty: not
/// called.
using BlockHook = std::function<void(std::uint64_t i)>;
void set_block_hook(BlockHook hook);

/// What the kernel before an early one has not written: each block begins with the old content of
/// this memory, and the content at the call of `run` is back when a thread has waited. Empty: the
/// kernel before has ended.
void set_predecessor(std::vector<UnfinishedMemory> unfinished);

/// Called for each load_aligned: the thread's index, the address and the size; empty: not called.
using LoadHook = std::function<void(unsigned thread, const std::byte* at, std::size_t size_bytes)>;
void set_load_hook(LoadHook hook);

/// Receives calls of `set_graph_condition`; null: they are ignored.
using ConditionHook = void (*)(std::uint64_t handle, std::uint32_t value);
void set_condition_hook(ConditionHook hook);

}  // namespace leasehold::simt
