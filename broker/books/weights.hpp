/// Weights regions: one copy of a model's weights, shared read-only by every worker that serves it.
///
///   Loading ─publish─► Published ─last engine lease closed─► Retained ─opened again─► Published
///      └─loader lost─► Scrubbing ─verified zero─► (free)        └─evicted─► (free)
///                          └─not zero─► Quarantined
///
/// The last engine lease of a worker that sleeps frees the region at once.
///
/// Weights have a capacity of their own, apart from the KV pool. Sealed memory cannot be punched: a
/// published region is freed by closing it after its last user has unmapped it or exited.
///
/// Users that may run workers have equal shares of the capacity and of the number of regions,
/// retained regions included. So a load by one user evicts no region within another user's share.
///
/// Invariant: free bytes + the sizes of all regions = weights capacity + over bytes. Regions
/// restored under a lower capacity may exceed it; then no region is added until enough of them are
/// gone. After the restore, the bytes over the capacity never increase.
///
/// Threads: one.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/books/ids.hpp"
#include "broker/books/quarantine.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// Identifies weights: the same file in the same layout, loaded by workers of one user. The broker
/// does not compare the bytes with the file, so a user gets only regions that its own workers
/// published.
struct WeightsKey {
  std::uint64_t file_device = 0;
  std::uint64_t file_inode = 0;
  std::uint64_t file_size_bytes = 0;
  std::int64_t file_mtime_ns = 0;
  std::string layout_digest;
  std::uint32_t layout_version = 0;
  std::uint32_t worker_uid = 0;
  auto operator<=>(const WeightsKey&) const = default;
};

WeightsKey key_of(const wire::WeightsOpen& open, std::uint32_t worker_uid);

enum class RegionState : std::uint8_t { Loading, Published, Retained, Scrubbing, Quarantined };
inline constexpr int kRegionStateCount = 5;

/// The transition table of the picture above; a free region has no record.
constexpr bool may_become(RegionState from, RegionState to) {
  switch (from) {
    case RegionState::Loading:
      return to == RegionState::Published || to == RegionState::Scrubbing;
    case RegionState::Published:
      return to == RegionState::Retained;
    case RegionState::Retained:
      return to == RegionState::Published;
    case RegionState::Scrubbing:
      return to == RegionState::Quarantined;
    case RegionState::Quarantined:
      return false;
  }
  return false;
}

/// "Loading", "Published" …
std::string_view name(RegionState state);

struct WeightsRegion {
  RegionId id;
  WeightsKey key;
  std::uint64_t size_bytes = 0;
  RegionState state = RegionState::Loading;
  AttachmentId loader;
  std::uint32_t users = 0;                 ///< Engine leases that may still map it.
  std::uint64_t retained_order = 0;        ///< The smallest is evicted first.
  std::optional<CallId> publish_call;      ///< The call that waits for the seal.
  std::optional<Quarantine> quarantine{};  ///< Set while Quarantined.
  /// The broker has no descriptor of the region, which was quarantined before a restart or was
  /// allocated by a device agent that ended.
  bool unavailable = false;
};

/// Precondition: the move is in the table.
void move(WeightsRegion& region, RegionState to);

struct WeightsLimits {
  std::uint64_t capacity_bytes = 0;
  std::uint32_t max_regions = 0;
  std::uint32_t worker_users = 1;  ///< Number of users that share both equally.
};

/// The bytes and the number of regions that a user holds or may hold.
struct WeightsUse {
  std::uint64_t size_bytes = 0;
  std::uint64_t regions = 0;
};

class WeightsStore {
 public:
  explicit WeightsStore(const WeightsLimits& limits)
      : capacity_bytes_(limits.capacity_bytes),
        share_{limits.capacity_bytes / limits.worker_users,
               std::max(1u, limits.max_regions / limits.worker_users)},
        limit_bytes_(limits.capacity_bytes) {}

  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  /// The limit for each user.
  const WeightsUse& share() const { return share_; }
  WeightsUse held_by(std::uint32_t worker_uid) const;
  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t free_bytes() const {
    return capacity_bytes_ - std::min(capacity_bytes_, held_bytes_);
  }
  std::uint64_t excess_bytes() const {
    return held_bytes_ - std::min(capacity_bytes_, held_bytes_);
  }

  WeightsRegion* find(RegionId id);
  std::uint64_t highest_id() const { return next_id_ - 1; }
  /// The available region with this key that is Loading, Published or Retained; or null.
  WeightsRegion* find_usable(const WeightsKey& key);
  const std::map<RegionId, WeightsRegion>& regions() const { return regions_; }

  /// The retained regions to evict so that `size_bytes` fit into the capacity and the user's share;
  /// nullopt if they cannot fit. The user's own regions come first, the oldest before newer ones. A
  /// region of another user is evicted only while that user holds more bytes than its share, which
  /// can be so after a restart with other limits.
  std::optional<std::vector<RegionId>> room_for(std::uint64_t size_bytes,
                                                std::uint32_t worker_uid) const;

  /// Precondition: size_bytes ≤ free_bytes().
  WeightsRegion& add(const WeightsKey& key, std::uint64_t size_bytes, AttachmentId loader);

  /// Restores a region of an earlier broker, also one beyond the capacity.
  WeightsRegion& restore(const WeightsRegion& region);
  /// New ids are greater than `id`.
  void start_above(std::uint64_t id) { next_id_ = std::max(next_id_, id + 1); }

  void retain(WeightsRegion& region);

  /// Removes the region and frees its bytes. Precondition: it has no users.
  void remove(RegionId id);

  /// Ensures that the sizes of all regions add up to the counted bytes, and that these are within
  /// the limit.
  void check_conservation() const;

 private:
  std::uint64_t capacity_bytes_;
  WeightsUse share_;
  std::uint64_t held_bytes_ = 0;
  // Upper bound of held_bytes_: the capacity, or the bytes that regions restored beyond it still
  // hold.
  std::uint64_t limit_bytes_;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_order_ = 1;
  std::map<RegionId, WeightsRegion> regions_;
};

}  // namespace leasehold
