/// What a card does beside the thread that asked for it: copies to shared memory, wgmma.
///
/// Both happen as late as the waits of the kernel allow, so that one which is missing, or comes too
/// early, shows in the result; with a seed whose second bit is set (2, 3, 6, 7 …) they happen as
/// early as they may.
///
/// Lifetime: as its block's. Threads: its block's only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/simt/collectives.hpp"

namespace leasehold::simt {

constexpr unsigned kLanes = 32;
constexpr unsigned kWarpgroup = 4 * kLanes;
constexpr int kDepth = 16;  ///< Of one matrix product.

/// A's rows of one warp.
using RowsOfA = std::array<std::array<float, kDepth>, 16>;

struct QueuedProduct {
  std::array<RowsOfA, 4> a;
  std::array<float*, 4 * kLanes> d;
  GroupProduct described;  ///< Of any lane; its b, strides and columns are everybody's.
};

/// Adds it to the lanes' d; reads b as it is now.
void multiply(const QueuedProduct& product);

class AsyncWork {
 public:
  /// Before each block.
  void begin(unsigned threads, bool early);

  void copy(unsigned thread, void* to, const void* from);
  void commit_copies(unsigned thread);
  void wait_copies(unsigned thread, std::size_t pending);
  /// What it copied and waited for is for wgmma to read, from the next barrier on.
  void fence_proxy_async(unsigned thread);

  /// Registers that it wrote are for wgmma to take.
  void fence_registers(unsigned thread);
  /// Fails where a card may read what is not there yet: a thread of the warpgroup did not fence
  /// since it waited, or one of the block did not show what it copied.
  void queue(unsigned warpgroup, const QueuedProduct& product);
  void commit_products(unsigned thread);
  void wait_products(unsigned thread, std::size_t pending);
  /// Whether some of its products were never waited for.
  bool has_unwaited_products(unsigned thread) const;

 private:
  struct Copy {
    void* to;
    const void* from;
  };
  /// Groups are told by where they end.
  struct Thread {
    std::vector<Copy> copies;
    std::size_t copied = 0;
    std::vector<std::size_t> copy_groups;
    std::vector<std::size_t> product_groups;
    std::size_t waited = 0;  ///< Products.
    bool is_copying = false;
    bool has_unfenced_copies = false;  ///< Copies that are there and were not shown.
    bool is_fenced = false;
  };
  struct Warpgroup {
    std::vector<QueuedProduct> products;  ///< Not done yet.
    std::size_t queued = 0;
    std::size_t done = 0;
  };

  void check_ready(unsigned warpgroup) const;

  bool early_ = false;
  unsigned n_threads_ = 0;  ///< Of the block; there may be more in threads_.
  std::vector<Thread> threads_;
  std::vector<Warpgroup> warpgroups_;
};

}  // namespace leasehold::simt
