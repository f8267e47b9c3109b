#include "tests/support/simt/runner.hpp"

#include <fmt/format.h>
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "common/expects.hpp"
#include "tests/support/simt/block.hpp"
#include "tests/support/simt/cuda_builtins.hpp"

namespace leasehold::simt {
namespace {

constexpr int kNan = 0xFF;  // four of these bytes are a NaN
constexpr int kCanary = 0xA5;
constexpr std::size_t kCanaryBytes = 256;
constexpr std::size_t kSharedAlignment = 128;

std::map<std::string_view, Kernel>& registry() {
  // Leaked, because a thread that is never joined may run kernels while the process ends.
  static auto& kernels = *new std::map<std::string_view, Kernel>;
  return kernels;
}

std::atomic<ConditionHook> condition_hook{nullptr};
BlockHook& block_hook() {
  static auto& hook = *new BlockHook;
  return hook;
}
LoadHook& load_hook() {
  static auto& hook = *new LoadHook;
  return hook;
}
Predecessor& predecessor() {
  static auto& previous = *new Predecessor({});
  return previous;
}
Block* running_block = nullptr;  ///< The only one of the process.

std::atomic<std::uint64_t>& order_seed() {
  static std::atomic<std::uint64_t> seed = [] {
    const char* const text = std::getenv("SIMT_SEED");
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  }();
  return seed;
}

/// A block's dynamic shared memory and a guarded area behind it. AddressSanitizer reports an access
/// to that area; without it, run() detects a write.
class SharedMemory {
 public:
  SharedMemory() : bytes_(new(std::align_val_t(kSharedAlignment)) std::byte[kBytes]) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    ASAN_UNPOISON_MEMORY_REGION(bytes_, kBytes);
    ::operator delete[](bytes_, std::align_val_t(kSharedAlignment));
  }

  static SharedMemory& mine() {
    thread_local SharedMemory memory;
    return memory;
  }
  std::byte* data() { return bytes_; }

  void clear(std::size_t size_bytes) {
    ASAN_UNPOISON_MEMORY_REGION(bytes_, kBytes);
    std::memset(bytes_, kNan, size_bytes);
    std::memset(bytes_ + size_bytes, kCanary, kCanaryBytes);
    ASAN_POISON_MEMORY_REGION(bytes_ + size_bytes, kBytes - size_bytes);
  }
  bool is_whole(std::size_t size_bytes) const {
    ASAN_UNPOISON_MEMORY_REGION(bytes_ + size_bytes, kCanaryBytes);
    return std::ranges::all_of(std::span(bytes_ + size_bytes, kCanaryBytes),
                               [](std::byte byte) { return byte == std::byte{kCanary}; });
  }

 private:
  static constexpr std::size_t kBytes = kMaxSharedBytes + kCanaryBytes;
  std::byte* bytes_;
};

Result<void> check(const Kernel& kernel, unsigned threads, std::size_t shared_bytes) {
  if (threads == 0 || threads > kernel.max_threads || threads > kMaxThreads) {
    return fail(Errc::DeviceFault, fmt::format("{} runs in blocks of at most {} threads, not {}",
                                               kernel.name, kernel.max_threads, threads));
  }
  if (shared_bytes > kMaxSharedBytes) {
    return fail(Errc::DeviceFault, fmt::format("{} is launched with {} bytes of shared memory",
                                               kernel.name, shared_bytes));
  }
  return {};
}

}  // namespace

Registration::Registration(const Kernel& kernel) {
  expects(kernel.params_bytes <= cuda::KernelParams::kMaxBytes, "a kernel's parameters are small");
  expects(registry().emplace(kernel.name, kernel).second, "kernel names are unique");
}

const Kernel* find(std::string_view name) {
  const auto at = registry().find(name);
  return at == registry().end() ? nullptr : &at->second;
}

std::vector<const Kernel*> all_kernels() {
  std::vector<const Kernel*> kernels;
  for (const auto& [name, kernel] : registry()) kernels.push_back(&kernel);
  return kernels;
}

void set_order_seed(std::uint64_t seed) {
  order_seed() = seed;
}

void set_condition_hook(ConditionHook hook) {
  condition_hook = hook;
}

void set_block_hook(BlockHook hook) {
  block_hook() = std::move(hook);
}

void set_predecessor(std::vector<UnfinishedMemory> unfinished) {
  predecessor() = Predecessor(std::move(unfinished));
}

void set_load_hook(LoadHook hook) {
  load_hook() = std::move(hook);
}

Result<void> run(const Kernel& kernel, cuda::GridSize grid, unsigned block_threads,
                 std::size_t dynamic_shared_bytes, const void* params) {
  TRY(check(kernel, block_threads, dynamic_shared_bytes));
  // A copy of exactly the kernel's parameter size, so that AddressSanitizer knows where it ends.
  const auto* const first = static_cast<const std::byte*>(params);
  const std::vector<std::byte> copied(first, first + kernel.params_bytes);
  // Shared arrays and the thread indices are process-wide.
  static auto& one_at_a_time = *new std::mutex;
  const std::scoped_lock lock(one_at_a_time);
  SharedMemory& shared = SharedMemory::mine();
  running_block = &Block::mine();
  ::gridDim = {grid.x, grid.y, grid.z};
  ::blockDim = {block_threads, 1, 1};
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const Order order(blocks, order_seed());
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t at = order.at(i);
    if (block_hook()) block_hook()(i);
    ::blockIdx = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                  static_cast<unsigned>(at / grid.x / grid.y)};
    shared.clear(dynamic_shared_bytes);
    auto failure = running_block->run({.kernel = &kernel,
                                       .params = copied.data(),
                                       .threads = block_threads,
                                       .order_seed = order_seed(),
                                       .predecessor = &predecessor()});
    if (!failure && !shared.is_whole(dynamic_shared_bytes))
      failure = "the kernel wrote behind the dynamic shared memory";
    if (failure) {
      return fail(Errc::DeviceFault,
                  fmt::format("{}, block ({}, {}, {}): {}", kernel.name, ::blockIdx.x, ::blockIdx.y,
                              ::blockIdx.z, *failure));
    }
  }
  return {};
}

Result<void> run(const cuda::KernelLaunch& launch) {
  const Kernel* const kernel = find(launch.kernel);
  if (kernel == nullptr)
    return fail(Errc::DeviceFault, fmt::format("unknown kernel {}", launch.kernel));
  return run(*kernel, launch.grid, launch.block_threads, launch.shared_bytes, launch.params.data());
}

void arrive_and_wait_block() {
  running_block->arrive_and_wait_block();
}

void arrive_and_wait_warp(const SyncPoint& sync_point, std::uint32_t mask, void* mine) {
  running_block->arrive_and_wait_warp(sync_point, mask, mine);
}

void arrive_and_wait_warpgroup(const SyncPoint& sync_point, void* mine) {
  running_block->arrive_and_wait_warpgroup(sync_point, mine);
}

void init_barrier(device::SharedBarrier& at, std::uint32_t arrivals) {
  running_block->init_barrier(at, arrivals);
}

void arrive_at_barrier(device::SharedBarrier& at, std::uint32_t expected_bytes) {
  running_block->arrive_at_barrier(at, expected_bytes);
}

void wait_for_barrier(device::SharedBarrier& at, std::uint32_t parity) {
  running_block->wait_for_barrier(at, parity);
}

void copy_bulk(device::SharedBarrier& at, const BulkCopy& copy) {
  running_block->copy_bulk(at, copy);
}

void await_previous_kernel() {
  running_block->await_previous_kernel();
}

unsigned running_thread() {
  return running_block->running();
}

AsyncWork& async_work() {
  return running_block->late();
}

std::byte* dynamic_shared_memory() {
  return SharedMemory::mine().data();
}

void notify_load(const std::byte* at, std::size_t size_bytes) {
  if (load_hook()) load_hook()(running_thread(), at, size_bytes);
}

void notify_condition(std::uint64_t handle, std::uint32_t value) {
  if (const ConditionHook hook = condition_hook.load()) hook(handle, value);
}

void fail_thread(const std::string& what) {
  running_block->fail(what);
}

}  // namespace leasehold::simt
