/// Two pools of memory, KV and swap. Each has a capacity in bytes and is cut into extents. All
/// extents have the same size, and an id is unique over both pools. Swap is host memory even where
/// the broker lends a device.
///
/// States of an extent, and the causes of its transitions:
///
///   Free ─grant─► Owned ─revoke─► Draining ─fence─► Scrubbing ─verified zero─► Free
///                   └────────shrink, by the worker's ack────►     └─not zero──────► Quarantined
///
/// Device memory stays with the worker that mapped it until that process exits: an importer keeps
/// access until it unmaps, and the broker cannot verify that it did.
///
///   Scrubbing ─worker unmapped─► Held ─grant on the same worker─► Owned
///                                  └─ProcessExit─► Scrubbing ─reported free by the driver─► Free
///                                                      └─not reported free─► Quarantined
///
///   Quarantined ─release by an operator, verified once more─► Scrubbing ─► Free
///
/// A Free extent is only capacity and has no record. A grant creates an extent with a new
/// `ExtentId` and a memory object that no lease has had (a fresh memfd is zero). The object is
/// closed when the extent is free again.
///
/// Host memory of a tenant whose worker died is retained for the tenant's next lease, with its
/// bytes (broker/decide/lease/retention.hpp):
///
///   Draining ─fence, worker_gone─► Retained ─adopted─► Owned
///                                      └─given up─► Scrubbing
///
/// Invariant: in each pool, the bytes over all states equal the capacity.
/// Threads: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "broker/books/ids.hpp"
#include "broker/books/memory/memory_accounts.hpp"
#include "broker/books/quarantine.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/segment/extent_size.hpp"

namespace leasehold {

using wire::MemoryPool;
inline constexpr std::array kMemoryPools{MemoryPool::Kv, MemoryPool::Swap};
static_assert(kMemoryPools.size() == wire::kMemoryPoolCount);

enum class ExtentState : std::uint8_t {
  Free,
  Owned,
  Draining,
  Scrubbing,
  Retained,
  Quarantined,
  Held,
};
inline constexpr int kExtentStateCount = 7;

/// "Free", "Owned" …
std::string_view name(ExtentState state);

/// The transition table of the picture above.
constexpr bool may_become(ExtentState from, ExtentState to) {
  using enum ExtentState;
  switch (from) {
    case Free:
      return to == Owned;
    case Owned:
      return to == Draining || to == Scrubbing;
    case Draining:
      return to == Scrubbing || to == Retained;
    case Scrubbing:
      return to == Free || to == Quarantined || to == Held;
    case Held:
    case Retained:
      return to == Owned || to == Scrubbing;
    case Quarantined:
      return to == Scrubbing;
  }
  return false;
}

struct ExtentRecord : ExtentAccount {
  ExtentState state = ExtentState::Owned;
  std::optional<Quarantine> quarantine{};  ///< Set while Quarantined.
  /// The broker lost the memory's descriptor in a restart; the worker may redeliver the memory.
  bool unavailable = false;
  AttachmentId lent_to{};  ///< Device memory: the worker that may reach it. Zero: none.
};

/// Which lease takes extents.
struct Borrower {
  LeaseId lease;
  TenantId tenant;  ///< Empty for shared memory.
  AttachmentId worker;
};

struct PoolCapacities {
  std::uint64_t kv_bytes = 0;
  std::uint64_t swap_bytes = 0;  ///< 0: no swap.
};

class ExtentBook {
 public:
  explicit ExtentBook(PoolCapacities capacities, std::uint32_t max_extents = kDefaultMaxExtents)
      : capacities_{capacities.kv_bytes, capacities.swap_bytes}, max_extents_(max_extents) {}

  std::uint64_t capacity_bytes(MemoryPool pool = MemoryPool::Kv) const {
    return capacities_[index_of(pool)];
  }
  /// At most kMaxExtents; 0 until the extent size is chosen.
  std::uint32_t capacity_extents(MemoryPool pool = MemoryPool::Kv) const;
  std::uint64_t extent_size_bytes() const { return extent_size_bytes_; }  ///< 0: not chosen yet.

  /// Chooses the extent size. Precondition: all memory is free.
  void choose_size(std::uint64_t block_bytes);
  /// The size that choose_size would choose. Each pool then has at most `max_extents` extents.
  std::uint64_t size_for(std::uint64_t block_bytes) const;

  /// Extents that any worker can take now.
  std::uint32_t free_extents(MemoryPool pool = MemoryPool::Kv) const;
  /// KV extents that this worker can take: the free ones and those held for it.
  std::uint32_t free_extents_for(AttachmentId worker) const;

  /// For KV, takes the extents that are held for the worker first. Precondition: `count` is at most
  /// free_extents_for(borrower.worker) for KV, free_extents(pool) for swap.
  std::vector<ExtentId> take(MemoryPool pool, std::uint32_t count, const Borrower& borrower);

  /// All extents held for this worker, including unavailable ones.
  std::vector<ExtentId> held_by(AttachmentId worker) const;

  /// Changes the state. Precondition: the extent exists, may_become(state, to), `to` is not Free.
  void move(ExtentId extent, ExtentState to);
  /// Moves the extent to Free, which erases its record. `fate`: the evidence, which is final.
  /// Precondition: as move.
  void free(ExtentId extent, MemoryFate fate);

  /// Gives a Retained extent to another lease of its tenant. Precondition: the extent is Retained.
  void adopt(ExtentId extent, LeaseId lease);

  /// The accounts of the leases' memory; the other functions keep them.
  MemoryAccounts& accounts() { return accounts_; }
  const MemoryAccounts& accounts() const { return accounts_; }

  /// Notes that the broker lost the extent's descriptor. Precondition: the extent exists.
  void mark_unavailable(ExtentId extent);
  /// Notes that the worker redelivered the memory. Precondition: the extent exists.
  void mark_available(ExtentId extent);
  /// `restore_size`, and then `restore` for each extent, restore the state of an earlier broker.
  /// Precondition of `restore`: the pool has room.
  void restore_size(std::uint64_t extent_size_bytes);
  void restore(ExtentId extent, const ExtentRecord& record);
  /// New ids are greater than `id`.
  void start_above(std::uint64_t id) { next_id_ = std::max(next_id_, id + 1); }

  ExtentRecord* find(ExtentId extent);
  const ExtentRecord* find(ExtentId extent) const;
  /// The given extents that belong to the pool, in the same order. Precondition: all exist.
  std::vector<ExtentId> of_pool(MemoryPool pool, std::span<const ExtentId> extents) const;
  const std::map<ExtentId, ExtentRecord>& records() const { return records_; }
  std::uint64_t highest_id() const { return next_id_ - 1; }

  /// Bytes per state, indexed by ExtentState. A remainder smaller than an extent counts as Free.
  std::array<std::uint64_t, kExtentStateCount> bytes_by_state(
      MemoryPool pool = MemoryPool::Kv) const;

  /// Recounts all bytes and ensures that the sum is the capacity of each pool.
  void check_conservation() const;

 private:
  using Records = std::map<ExtentId, ExtentRecord>;
  Records::iterator change(ExtentId extent, ExtentState to);
  static constexpr std::size_t index_of(MemoryPool pool) { return static_cast<std::size_t>(pool); }
  std::uint64_t free_bytes(MemoryPool pool) const {
    return capacity_bytes(pool) - used_[index_of(pool)] * extent_size_bytes_;
  }

  std::array<std::uint64_t, kMemoryPools.size()> capacities_;
  std::uint32_t max_extents_;
  std::uint64_t extent_size_bytes_ = 0;
  std::uint64_t next_id_ = 1;
  std::array<std::uint32_t, kMemoryPools.size()> used_{};  ///< Extents that are not Free.
  Records records_;
  std::map<AttachmentId, std::set<ExtentId>> held_;
  MemoryAccounts accounts_;
};

}  // namespace leasehold
