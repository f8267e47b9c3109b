/// The barriers in shared memory of one block, and the bulk copies that they count.
///
/// Copies land as late as the kernel's waits allow, so that a missing wait changes the result; or
/// all at once, if asked. A use that is undefined on a card fails the thread.
///
/// Lifetime and threads: those of its block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/device/shared_barrier.hpp"

namespace leasehold::simt {

struct BulkCopy {
  void* to;
  const void* from;
  std::uint32_t size_bytes;
};

/// The thread that uses a barrier.
struct BarrierUser {
  unsigned thread;
  std::uint64_t n_syncs;  ///< Block barriers that the block has passed.
};

class SharedBarriers {
 public:
  /// Call before each block.
  void begin(bool early);

  void init(device::SharedBarrier& at, BarrierUser user, std::uint32_t arrivals);
  /// Each returns whether a phase is complete now that was not before.
  bool arrive(device::SharedBarrier& at, BarrierUser user, std::uint32_t expected_bytes);
  /// `from_unfinished`: reads the source now, because the previous kernel may still write it.
  bool copy(device::SharedBarrier& at, BarrierUser user, const BulkCopy& copy,
            bool from_unfinished);
  /// Lands the oldest copy; the barrier must have one.
  bool land(const device::SharedBarrier& at);
  bool is_landing(const device::SharedBarrier& at) const;

  /// Whether the newest phase of this parity is complete. Then its copies have been waited for.
  bool try_wait(device::SharedBarrier& at, BarrierUser user, std::uint32_t parity);

  /// What the current phase of a barrier lacks.
  std::string missing(const device::SharedBarrier& at) const;
  /// Names a barrier with copies that no wait covers.
  std::optional<std::string> unawaited() const;

 private:
  struct Flying {
    BulkCopy copy;
    std::vector<std::byte> read;  ///< The source's bytes, if they are read already.
  };
  struct Barrier {
    std::uint32_t arrivals;
    std::uint32_t missing;  ///< Arrivals of the current phase.
    BarrierUser initialised_by;
    std::int64_t missing_bytes = 0;  ///< Below 0: landed, and not expected yet.
    std::int64_t flying_bytes = 0;
    std::uint64_t phase = 0;          ///< Phases that are complete.
    std::uint64_t n_awaited = 0;      ///< Phases that a wait has covered.
    std::uint64_t n_with_copies = 0;  ///< Phases up to the newest one that has copies.
    std::deque<Flying> flying;
  };

  Barrier& find(const device::SharedBarrier& at, BarrierUser user);
  static bool store(Barrier& barrier, const Flying& flying);
  static bool complete_if_due(Barrier& barrier);
  static void check_bytes(const Barrier& barrier);

  bool early_ = false;
  std::map<const device::SharedBarrier*, Barrier> barriers_;
};

}  // namespace leasehold::simt
