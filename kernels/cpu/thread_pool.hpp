/// A fixed set of threads that share the tiles of one launch at a time.
///
/// The calling thread is thread 0 and works too. A launch is over when every tile is done; it does
/// not wait for a thread that slept through it. Threads that wait, the caller too, spin for at most
/// 50 µs, then sleep on a futex. A launch takes no lock and allocates nothing.
///
///   state_word_ = launch:24 | closed:1 | busy:7
///     caller   publishes a job by opening state_word_ with the next launch number;
///     worker   joins by busy += 1 while the launch is open; leaves by busy -= 1
///     caller   closes when the tiles run out, and waits for busy == 0
///
/// With several nodes of memory, each thread runs on the cores of one node and takes the tiles of
/// that node first (node_tiles.hpp).
///
/// Threads: `run` from one thread at a time. Work must not throw.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/tile_passes.hpp"

namespace leasehold {

class NodeTiles;

/// How the threads of a pool are spread over nodes of memory. Machines with several nodes have not
/// run this yet; tests divide the threads of one node.
struct PoolNodes {
  /// Threads per node, each at least 1; their sum is the pool's number of threads. With fewer than
  /// two nodes no thread is bound and passes are not divided.
  std::vector<std::uint32_t> threads;
  /// Called once for each thread that the pool starts, from the pool's constructor; `node` is an
  /// index of `threads`. The caller of `run` belongs to node 0, and the owner of that thread binds
  /// it.
  std::function<void(std::thread::native_handle_type thread, std::uint32_t node)> bind;
};

class ThreadPool {
 public:
  /// `threads` counts the caller: 1 starts no thread. Throws std::system_error if the system has no
  /// more threads; the owner's create() converts it to an Error.
  explicit ThreadPool(std::uint32_t threads, const PoolNodes& nodes = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t threads() const { return static_cast<std::uint32_t>(workers_.size()) + 1; }
  /// The number of threads on the node of `thread`, which is included.
  std::uint32_t threads_on_node_of(std::uint32_t thread) const {
    return node_tiles_ == nullptr ? threads() : threads_of_node(thread);
  }

  /// Calls `work(thread, tile)` once for each tile of the passes; the first tile is 0. A thread
  /// whose call returns false takes no more tiles.
  template <class Work>
  void run(const TilePasses& passes, Work&& work) {
    const auto call = [](void* target, std::uint32_t thread, std::uint32_t tile) {
      return static_cast<bool>(
          (*static_cast<std::remove_reference_t<Work>*>(target))(thread, tile));
    };
    run_job({.call = call, .target = &work, .n_tiles = passes.count()}, passes);
  }

 private:
  void stop();
  struct Job {
    bool (*call)(void* target, std::uint32_t thread, std::uint32_t tile) = nullptr;
    void* target = nullptr;
    std::uint32_t n_tiles = 0;
  };

  void run_job(const Job& job, const TilePasses& passes);
  void take_tiles(std::uint32_t thread);
  std::uint32_t threads_of_node(std::uint32_t thread) const;
  void worker_loop(std::uint32_t thread);
  void sleep_until_idle() const;
  std::uint32_t wait_for_launch(std::uint32_t seen) const;
  bool join(std::uint32_t launch);

  std::unique_ptr<NodeTiles> node_tiles_;  // null with one node
  std::vector<std::thread> workers_;
  std::atomic<bool> stopping_{false};
  // The state word and the job share a cache line, so a worker that sees a new launch has its job
  // at once. Threads take tiles on another line, so they do not disturb threads that wait.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> state_word_;
  Job job_;  // written by the caller while the launch is closed and no worker is busy
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> next_tile_{0};
  static_assert(sizeof(std::uint32_t) + alignof(Job) + sizeof(Job) <= kCacheLineBytes);
};

}  // namespace leasehold
