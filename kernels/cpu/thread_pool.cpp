#include "kernels/cpu/thread_pool.hpp"

#include <algorithm>
#include <chrono>

#include "common/expects.hpp"
#include "common/machine/process.hpp"
#include "kernels/cpu/node_tiles.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kBusyMask = 0x7F;
constexpr std::uint32_t kClosed = 0x80;
constexpr std::uint32_t kLaunchStep = 0x100;
constexpr auto kSpinTimeout = std::chrono::microseconds(50);
constexpr int kPausesPerClockRead = 32;

constexpr std::uint32_t launch_of(std::uint32_t word) {
  return word & ~(kBusyMask | kClosed);
}

/// Slows this core down for some cycles, for the benefit of the other thread that it may run.
void pause_core() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` takes no time on most cores
#endif
}

/// Spins until `done()` or until the spin budget is spent. Returns whether it is done.
template <class Done>
bool spin_until(Done&& done) {
  std::chrono::steady_clock::time_point deadline{};  // set when a wait outlasts the first pauses
  for (;;) {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (done()) return true;
      pause_core();
    }
    const auto now = std::chrono::steady_clock::now();
    if (deadline == std::chrono::steady_clock::time_point{}) deadline = now + kSpinTimeout;
    if (now >= deadline) return false;
  }
}

/// Null with one node.
std::unique_ptr<NodeTiles> make_node_tiles(std::uint32_t threads, const PoolNodes& nodes) {
  if (nodes.threads.size() < 2) return nullptr;
  const NodeShares shares(nodes.threads);
  expects(shares.threads() == threads, "the threads of a pool's nodes are those of the pool");
  expects(std::ranges::find(nodes.threads, 0u) == nodes.threads.end(), "each node has a thread");
  return std::make_unique<NodeTiles>(shares);
}

}  // namespace

ThreadPool::ThreadPool(std::uint32_t threads, const PoolNodes& nodes)
    : node_tiles_(make_node_tiles(threads, nodes)), state_word_(kClosed) {
  expects(threads >= 1 && threads <= kMaxGateThreads, "a pool has 1 to kMaxGateThreads threads");
  workers_.reserve(threads - 1);
  try {
    for (std::uint32_t t = 1; t < threads; ++t) {
      workers_.emplace_back([this, t] { worker_loop(t); });
      if (node_tiles_ != nullptr && nodes.bind)
        nodes.bind(workers_.back().native_handle(), node_tiles_->shares().node_of(t));
    }
  } catch (...) {
    stop();  // joins the threads that did start before the exception propagates
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  // release: a worker that sees the new launch number also sees `stopping_`.
  state_word_.store(launch_of(state_word_.load(std::memory_order_relaxed)) + kLaunchStep + kClosed,
                    std::memory_order_release);
  state_word_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_job(const Job& job, const TilePasses& passes) {
  job_ = job;
  next_tile_.store(0, std::memory_order_relaxed);
  if (node_tiles_ != nullptr) node_tiles_->begin(passes);
  if (job.n_tiles <= 1 || workers_.empty()) return take_tiles(0);  // not worth a wake-up
  const std::uint32_t launch = launch_of(state_word_.load(std::memory_order_relaxed)) + kLaunchStep;
  state_word_.store(launch, std::memory_order_release);  // pairs with join: the job is visible
  state_word_.notify_all();
  take_tiles(0);
  state_word_.fetch_or(kClosed, std::memory_order_relaxed);
  // acquire pairs with the release in worker_loop: what workers computed is visible to the caller.
  const auto all_idle = [&] {
    return (state_word_.load(std::memory_order_acquire) & kBusyMask) == 0;
  };
  if (!spin_until(all_idle)) sleep_until_idle();
}

/// A worker that is busy after the spin has lost its core during a tile. While the caller sleeps,
/// the kernel can run the worker on the caller's core.
void ThreadPool::sleep_until_idle() const {
  std::uint32_t word = state_word_.load(std::memory_order_acquire);
  for (; (word & kBusyMask) != 0; word = state_word_.load(std::memory_order_acquire))
    state_word_.wait(word);
}

/// With several nodes, a thread takes tiles of its own node, then of the nodes after it.
void ThreadPool::take_tiles(std::uint32_t thread) {
  if (node_tiles_ == nullptr) {
    for (;;) {
      const std::uint32_t tile = next_tile_.fetch_add(1, std::memory_order_relaxed);
      if (tile >= job_.n_tiles || !job_.call(job_.target, thread, tile)) return;
    }
  }
  const std::uint32_t nodes = node_tiles_->shares().nodes();
  const std::uint32_t own = node_tiles_->shares().node_of(thread);
  for (std::uint32_t k = 0; k < nodes; ++k)
    while (const auto tile = node_tiles_->take((own + k) % nodes))
      if (!job_.call(job_.target, thread, *tile)) return;
}

std::uint32_t ThreadPool::threads_of_node(std::uint32_t thread) const {
  const NodeShares& shares = node_tiles_->shares();
  return shares.threads_of(shares.node_of(thread));
}

/// Waits for a launch other than `seen` and returns its number.
std::uint32_t ThreadPool::wait_for_launch(std::uint32_t seen) const {
  const auto moved = [&] { return launch_of(state_word_.load(std::memory_order_acquire)) != seen; };
  if (!spin_until(moved)) {
    std::uint32_t word = state_word_.load(std::memory_order_acquire);
    for (; launch_of(word) == seen; word = state_word_.load(std::memory_order_acquire))
      state_word_.wait(word);
  }
  return launch_of(state_word_.load(std::memory_order_acquire));
}

/// Joins the launch unless it has closed. `job_` may be read only after joining.
bool ThreadPool::join(std::uint32_t launch) {
  std::uint32_t word = state_word_.load(std::memory_order_acquire);
  while (launch_of(word) == launch && (word & kClosed) == 0)
    if (state_word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire)) return true;
  return false;
}

void ThreadPool::worker_loop(std::uint32_t thread) {
  set_thread_name("compute");
  std::uint32_t seen = 0;
  for (;;) {
    seen = wait_for_launch(seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!join(seen)) continue;
    take_tiles(thread);
    // Only the last worker to leave ends the caller's wait.
    const std::uint32_t word = state_word_.fetch_sub(1, std::memory_order_release);
    if ((word & kClosed) != 0 && (word & kBusyMask) == 1) state_word_.notify_all();
  }
}

}  // namespace leasehold
