/// Calls back when the launches that began before a given moment are over: all of them, or only
/// those that touch tenant memory.
///
/// The launching thread counts launches when it enqueues them and when they end. A graph counts as
/// one launch, however long it is. A waiter is therefore also called once a kernel has seen the
/// mirror (kernels/cuda/launcher.hpp) that was written after the waiter arrived: all earlier work
/// is over, and all later work reads that mirror. A gate inside a graph runs alone, so it answers
/// every waiter. The matmul after attention reads weights itself, so it answers only waiters for
/// tenant memory.
///
/// Threads: any thread may call `when_settled`; all other functions belong to the launching thread.
/// Lifetime: destruction drops waiters without calling them; the process is ending.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/launch_status.hpp"

namespace leasehold::cuda {

class SettleWatch {
 public:
  using Callback = std::move_only_function<void()>;

  /// Calls `callback` when all launches of the scope that began before this call are over,
  /// or at once if they already are. After a fault the callback is destroyed without being called.
  void when_settled(Callback callback, SettleScope scope = SettleScope::Everything);

  /// Counts a launch that is being enqueued.
  void issued(bool touches_tenants = true) {
    const std::uint64_t count = issued_.load(std::memory_order_relaxed) + 1;
    // Stored first, so that no waiter counts this launch as one that touches no tenant.
    if (touches_tenants) tenant_issued_.store(count, std::memory_order_seq_cst);
    issued_.store(count, std::memory_order_seq_cst);
  }
  /// Reports that the first `count` launches are over.
  void finished(std::uint64_t count);
  /// Reports that a kernel that settles memory of this scope has seen this state of the mirror, or
  /// a newer one. Epochs wrap; reports and waiters are less than 2^31 apart.
  void seen(std::uint32_t epoch, SettleScope scope = SettleScope::Everything);
  /// The newest waiter without an epoch, or 0. Order: call this, read the lease words, write the
  /// mirror, then call `stamp` with the mirror's epoch. A waiter that arrives after this call may
  /// know of a word stored after the read.
  std::uint64_t unstamped() const { return unstamped_.load(std::memory_order_seq_cst); }
  /// Gives this epoch to the waiters without one, up to number `newest`.
  void stamp(std::uint64_t newest, std::uint32_t epoch);
  /// The device failed. No callback is called from now on, because the state of its running work is
  /// unknown.
  void mark_lost() { lost_.store(true, std::memory_order_seq_cst); }

  std::uint64_t issued_count() const { return issued_.load(std::memory_order_relaxed); }
  std::uint64_t finished_count() const { return finished_.load(std::memory_order_relaxed); }

 private:
  struct Waiter {
    std::uint64_t number;  // from 1, in order of arrival
    SettleScope scope;
    std::uint64_t launches;
    std::optional<std::uint32_t> epoch;
    Callback callback;
  };
  template <class IsDone>
  void notify(IsDone&& is_done);

  std::uint64_t last_of(SettleScope scope) const {
    const auto& last = scope == SettleScope::TenantMemory ? tenant_issued_ : issued_;
    return last.load(std::memory_order_seq_cst);
  }

  std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::uint64_t> tenant_issued_{0};  // number of the last launch that touches tenants
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<std::uint64_t> unstamped_{0};
  std::atomic<bool> lost_{false};
  std::atomic<std::size_t> waiting_{0};  // size of `waiters_`, read without the mutex
  std::mutex mutex_;
  std::uint64_t newest_ = 0;
  std::vector<Waiter> waiters_;
};

}  // namespace leasehold::cuda
