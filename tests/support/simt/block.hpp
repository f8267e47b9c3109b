/// The threads of one block as fibers, and their synchronisation points.
///
/// Lifetime: one Block per host thread, until that thread ends; it reuses its fibers and stacks for
/// every block of a grid. Threads: that host thread only.
#pragma once

#include <array>
#include <bitset>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fiber.hpp"
#include "tests/support/simt/async_work.hpp"
#include "tests/support/simt/predecessor.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/support/simt/shared_barriers.hpp"
#include "tests/support/simt/sync_points.hpp"

namespace leasehold::simt {

constexpr unsigned kWarp = 32;
constexpr unsigned kMaxThreads = 1024;

/// Visits 0 … count-1, each once, in the order of a seed of set_order_seed.
class Order {
 public:
  Order(std::uint64_t count, std::uint64_t seed);
  std::uint64_t at(std::uint64_t i) const { return ascending_ ? i : (first_ + i * step_) % count_; }

 private:
  bool ascending_;
  std::uint64_t count_;
  std::uint64_t first_ = 0;
  std::uint64_t step_ = 1;
};

struct BlockWork {
  const Kernel* kernel = nullptr;
  const void* params = nullptr;
  unsigned threads = 0;
  std::uint64_t order_seed = 0;
  Predecessor* predecessor = nullptr;  ///< Used if the kernel starts early.
};

class Block {
 public:
  Block() { fibers_[kOutside].emplace(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() = default;

  /// Returns this thread's block.
  static Block& mine();

  /// Runs every thread to its end. Returns the failure, if any.
  std::optional<std::string> run(const BlockWork& work);

  // Called by kernels.
  void arrive_and_wait_block();
  void arrive_and_wait_warp(const SyncPoint& sync_point, std::uint32_t mask, void* part);
  void arrive_and_wait_warpgroup(const SyncPoint& sync_point, void* part);
  void init_barrier(device::SharedBarrier& at, std::uint32_t arrivals);
  void arrive_at_barrier(device::SharedBarrier& at, std::uint32_t expected_bytes);
  void wait_for_barrier(device::SharedBarrier& at, std::uint32_t parity);
  void copy_bulk(device::SharedBarrier& at, const BulkCopy& copy);
  void await_previous_kernel();
  [[noreturn]] void fail(const std::string& what);
  unsigned running() const { return running_; }
  AsyncWork& late() { return async_work_; }

 private:
  static constexpr unsigned kMaxWarps = kMaxThreads / kWarp;
  static constexpr unsigned kOutside = kMaxThreads;  ///< The fiber that called `run`.

  /// One bit per lane. A lane in neither mask waits.
  struct Warp {
    std::uint32_t all = 0;
    std::uint32_t ready = 0;
    std::uint32_t ended = 0;
  };

  struct Wait {
    const char* at = "";
    std::uint32_t mask = 0;
    const device::SharedBarrier* barrier = nullptr;
    bool operator==(const Wait&) const = default;
  };

  /// Lanes that arrive at a synchronisation point; `members` counts from `first`.
  struct PendingSync {
    Finish finish = nullptr;
    const char* name = nullptr;
    unsigned first = 0;
    std::uint32_t mask = 0;  ///< 0: the whole warpgroup.
    unsigned missing = 0;    ///< 0: free for another synchronisation point.
    std::array<void*, kWarpgroup> members{};
  };

  void prepare(const BlockWork& work);
  void start_fiber(unsigned thread);
  void live();
  void end_thread();
  bool run_round();
  bool make_progress();
  bool land_a_copy();
  bool end_predecessor();
  void switch_to(unsigned thread);
  void run_next();
  std::optional<unsigned> next_of_warp(unsigned after) const;
  void wait_at(const Wait& wait);
  void wake(unsigned thread);
  void wake_waiters(const device::SharedBarrier& at);
  BarrierUser user() const { return {.thread = running_, .n_syncs = n_syncs_}; }
  void release(const PendingSync& pending_sync);
  PendingSync& pending_sync_for(const SyncPoint& sync_point, unsigned first, std::uint32_t mask);
  void arrive(PendingSync& pending_sync, void* part);
  std::string stalled() const;

  BlockWork work_;
  unsigned warp_count_ = 0;
  std::array<Warp, kMaxWarps> warps_{};
  std::array<Wait, kMaxThreads> waits_{};
  /// The last one is the caller's. Entries from `started_` on are empty.
  std::array<std::optional<testing::Fiber>, kMaxThreads + 1> fibers_;
  unsigned started_ = 0;
  std::deque<PendingSync> pending_syncs_;
  AsyncWork async_work_;
  SharedBarriers barriers_;
  bool has_predecessor_ended_ = true;
  std::bitset<kMaxThreads> has_awaited_;  ///< The predecessor, by thread.
  unsigned running_ = kOutside;
  unsigned at_barrier_ = 0;
  std::uint64_t n_syncs_ = 0;
  unsigned ended_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace leasehold::simt
