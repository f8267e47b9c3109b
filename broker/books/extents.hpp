/// The KV pool: capacity in bytes, cut into extents of one size.
///
/// States of an extent, and who moves it:
///
///   Free ─grant─► Owned ─revoke─► Draining ─fence─► Scrubbing ─verified zero─► Free
///                   └────────shrink, by the worker's ack────►     └─touched again─► Quarantined
///
/// Memory of a device stays with the worker that had it until that process has exited: an importer
/// keeps access until it unmaps, and nobody can look whether it has.
///
///   Scrubbing ─unmapped, by its word─► Held ─grant on the same worker─► Owned
///                                        └─ProcessExit─► Scrubbing ─driver's free figure─► Free
///                                                            └─did not come back─► Quarantined
///
/// A Free extent is only capacity: its memory object is made when it is granted (a fresh memfd is
/// zero by the kernel) and closed when it is free again, so an `ExtentId` names one object once.
/// Retained (kept for adoption) holds bytes of a tenant whose worker died; nothing enters it yet.
///
/// Invariant, checked after every decision: the bytes over all states are the capacity.
/// Threads: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "broker/books/ids.hpp"
#include "broker/books/quarantine.hpp"

namespace leasehold {

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
      return to == Owned || to == Scrubbing;
    case Retained:
    case Quarantined:
      return to == Scrubbing;
  }
  return false;
}

struct ExtentRecord {
  ExtentState state = ExtentState::Owned;
  LeaseId lease;                           ///< Of a quarantined or held extent: the last one.
  std::optional<Quarantine> quarantine{};  ///< While Quarantined.
  /// The broker was started again and holds no descriptor of it; whoever still maps it delivers it.
  bool unavailable = false;
  AttachmentId lent_to{};  ///< Of a device: who may still reach it. Zero: it never left.
};

inline constexpr std::uint32_t kDefaultMaxExtents = 1024;
inline constexpr std::uint32_t kMaxExtents = 16'384;
inline constexpr std::uint64_t kMinExtentBytes = 2ull << 20;

/// The extent size for KV blocks of `block_bytes`: the smallest 2 MiB·2^k in which 8 blocks fit (1
/// block when one is larger than 32 MiB) and that cuts the capacity into at most `max_extents`.
/// Pure. Precondition: block_bytes is 1 … 2^40.
std::uint64_t choose_extent_size(std::uint64_t capacity_bytes, std::uint64_t block_bytes,
                                 std::uint32_t max_extents = kDefaultMaxExtents);

class ExtentPool {
 public:
  explicit ExtentPool(std::uint64_t capacity_bytes, std::uint32_t max_extents = kDefaultMaxExtents)
      : capacity_bytes_(capacity_bytes), max_extents_(max_extents) {}

  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::uint64_t extent_size_bytes() const { return extent_size_bytes_; }  ///< 0: not chosen yet.

  /// Once. Later callers get blocks of their own size into extents of this one.
  void choose_size(std::uint64_t block_bytes);

  /// Extents that can be taken now: by anybody, and by this worker, which may hold some.
  std::uint32_t free_extents() const;
  std::uint32_t free_extents_for(AttachmentId worker) const;

  /// What the worker holds goes first. Precondition: count ≤ free_extents_for(worker).
  std::vector<ExtentId> take(std::uint32_t count, LeaseId lease, AttachmentId worker = {});

  /// Held for this worker, those that are unavailable too.
  std::vector<ExtentId> held_by(AttachmentId worker) const;

  /// Precondition: the extent exists and the move is in the table. To Free: the record is gone.
  void move(ExtentId extent, ExtentState to);

  /// Its descriptor went with the broker that had it. Precondition, as below: the extent exists.
  void mark_unavailable(ExtentId extent);
  /// Its memory was delivered.
  void mark_available(ExtentId extent);
  /// As a broker before this one left it. Preconditions: the size is chosen; there is room.
  void restore_size(std::uint64_t extent_size_bytes);
  void restore(ExtentId extent, const ExtentRecord& record);
  /// Ids up to this one were used before.
  void start_above(std::uint64_t id) { next_id_ = std::max(next_id_, id + 1); }

  ExtentRecord* find(ExtentId extent);
  const ExtentRecord* find(ExtentId extent) const;
  const std::map<ExtentId, ExtentRecord>& records() const { return records_; }
  std::uint64_t highest_id() const { return next_id_ - 1; }

  /// Bytes per state, indexed by ExtentState. A remainder smaller than an extent is Free.
  std::array<std::uint64_t, kExtentStateCount> bytes_by_state() const;

  /// Counts everything again and ensures that the sum is the capacity.
  void check_conservation() const;

 private:
  std::uint64_t capacity_bytes_;
  std::uint32_t max_extents_;
  std::uint64_t extent_size_bytes_ = 0;
  std::uint64_t next_id_ = 1;
  std::uint64_t free_bytes_ = capacity_bytes_;
  std::map<ExtentId, ExtentRecord> records_;
  std::map<AttachmentId, std::set<ExtentId>> held_;
};

}  // namespace leasehold
