/// Asynchronous work of a card: copies to shared memory, and wgmma.
///
/// Both happen as late as the kernel's waits allow, so that a missing or early wait changes the
/// result; or as early as possible, if asked.
///
/// Lifetime and threads: those of its block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/simt/collectives.hpp"

namespace leasehold::simt {

constexpr unsigned kLanes = 32;
constexpr unsigned kWarpgroup = 4 * kLanes;

/// The parts of a product, by thread of the warpgroup.
struct QueuedProduct {
  std::array<std::array<std::uint32_t, 4>, kWarpgroup> a;
  std::array<void*, kWarpgroup> d;
  GroupProduct described;  ///< By any thread; all share everything but a and d.
};

/// Adds the product to the lanes' d; reads b at this moment.
void multiply(const QueuedProduct& product);

class AsyncWork {
 public:
  /// Call before each block.
  void begin(unsigned threads, bool early);

  void copy(unsigned thread, void* to, const void* from, std::size_t size_bytes);
  void commit_copies(unsigned thread);
  void wait_copies(unsigned thread, std::size_t pending);
  /// Makes the thread's completed copies visible to wgmma after the next barrier.
  void fence_proxy_async(unsigned thread) { threads_[thread].has_unfenced_copies = false; }

  /// Makes the thread's register writes visible to wgmma.
  void fence_registers(unsigned thread) { threads_[thread].is_fenced = true; }
  /// Fails if a card could read stale data: a thread of the warpgroup has no fence since its last
  /// wait, or a thread of the block did not fence its copies.
  void queue(unsigned warpgroup, const QueuedProduct& product);
  void commit_products(unsigned thread);
  void wait_products(unsigned thread, std::size_t pending);
  /// Whether the thread has products that it never waited for.
  bool has_unwaited_products(unsigned thread) const;

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t size_bytes;
  };
  /// A group is represented by its end.
  struct Thread {
    std::vector<Copy> copies;
    std::size_t copied = 0;
    std::vector<std::size_t> copy_groups;
    std::vector<std::size_t> product_groups;
    std::size_t waited = 0;  ///< Products.
    bool is_copying = false;
    bool has_unfenced_copies = false;  ///< Completed copies without a fence.
    bool is_fenced = false;
  };
  struct Warpgroup {
    std::vector<QueuedProduct> products;  ///< Not computed yet.
    std::size_t queued = 0;
    std::size_t done = 0;
  };

  void check_ready(unsigned warpgroup) const;

  bool early_ = false;
  unsigned n_threads_ = 0;  ///< Of the block; threads_ may be longer.
  std::vector<Thread> threads_;
  std::vector<Warpgroup> warpgroups_;
};

}  // namespace leasehold::simt
