#include "broker/books/weights.hpp"

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {

WeightsKey key_of(const wire::WeightsOpen& open, std::uint32_t worker_uid) {
  return {.file_device = open.file_device,
          .file_inode = open.file_inode,
          .file_size_bytes = open.file_size_bytes,
          .file_mtime_ns = open.file_mtime_ns,
          .layout_digest = open.layout_digest,
          .layout_version = open.layout_version,
          .worker_uid = worker_uid};
}

std::string_view name(RegionState state) {
  constexpr std::string_view kNames[] = {"Loading", "Published", "Retained", "Scrubbing",
                                         "Quarantined"};
  return kNames[static_cast<unsigned>(state)];
}

void move(WeightsRegion& region, RegionState to) {
  expects(may_become(region.state, to), "a region moves as its state table says");
  region.state = to;
}

WeightsRegion* WeightsStore::find(RegionId id) {
  const auto found = regions_.find(id);
  return found == regions_.end() ? nullptr : &found->second;
}

WeightsRegion* WeightsStore::find_usable(const WeightsKey& key) {
  for (auto& [id, region] : regions_) {
    const bool usable = region.state <= RegionState::Retained && !region.unavailable;
    if (region.key == key && usable) return &region;
  }
  return nullptr;
}

WeightsUse WeightsStore::held_by(std::uint32_t worker_uid) const {
  WeightsUse use;
  for (const auto& [id, region] : regions_) {
    if (region.key.worker_uid != worker_uid) continue;
    use.size_bytes += region.size_bytes;
    ++use.regions;
  }
  return use;
}

std::optional<std::vector<RegionId>> WeightsStore::room_for(std::uint64_t size_bytes,
                                                            std::uint32_t worker_uid) const {
  const auto is_own = [&](const WeightsRegion& region) {
    return region.key.worker_uid == worker_uid;
  };
  std::vector<const WeightsRegion*> retained;
  for (const auto& [id, region] : regions_) {
    if (region.state == RegionState::Retained) retained.push_back(&region);
  }
  std::ranges::sort(retained, {}, [&](const WeightsRegion* region) {
    return std::pair(!is_own(*region), region->retained_order);
  });
  std::map<std::uint32_t, WeightsUse> held_by_user{{worker_uid, held_by(worker_uid)}};
  const WeightsUse& held = held_by_user.at(worker_uid);
  std::uint64_t still_held = held_bytes_;
  const auto fits_capacity = [&] {
    return still_held <= capacity_bytes_ && size_bytes <= capacity_bytes_ - still_held;
  };
  const auto fits_share = [&] {
    return held.regions < share_.regions && held.size_bytes <= share_.size_bytes &&
           size_bytes <= share_.size_bytes - held.size_bytes;
  };
  std::vector<RegionId> evicted;
  for (const WeightsRegion* region : retained) {
    if (fits_capacity() && (fits_share() || !is_own(*region))) break;
    const std::uint32_t uid = region->key.worker_uid;
    WeightsUse& of_user = held_by_user.try_emplace(uid, held_by(uid)).first->second;
    if (!is_own(*region) && of_user.size_bytes <= share_.size_bytes) continue;
    of_user = {of_user.size_bytes - region->size_bytes, of_user.regions - 1};
    still_held -= region->size_bytes;
    evicted.push_back(region->id);
  }
  if (!fits_capacity() || !fits_share()) return std::nullopt;
  return evicted;
}

WeightsRegion& WeightsStore::add(const WeightsKey& key, std::uint64_t size_bytes,
                                 AttachmentId loader) {
  expects(size_bytes <= free_bytes(), "a region fits the capacity that is left");
  held_bytes_ += size_bytes;
  const RegionId id{next_id_++};
  auto& region = regions_[id];
  region = WeightsRegion{.id = id, .key = key, .size_bytes = size_bytes, .loader = loader};
  return region;
}

WeightsRegion& WeightsStore::restore(const WeightsRegion& region) {
  const auto [it, added] = regions_.emplace(region.id, region);
  expects(added, "a region is restored once");
  held_bytes_ += region.size_bytes;
  limit_bytes_ = std::max(capacity_bytes_, held_bytes_);
  start_above(region.id.value);
  return it->second;
}

void WeightsStore::retain(WeightsRegion& region) {
  expects(region.users == 0, "only a region without users is retained");
  move(region, RegionState::Retained);
  region.retained_order = next_order_++;
}

void WeightsStore::remove(RegionId id) {
  const auto found = regions_.find(id);
  expects(found != regions_.end() && found->second.users == 0, "only an unused region is removed");
  held_bytes_ -= found->second.size_bytes;
  limit_bytes_ = std::max(capacity_bytes_, held_bytes_);
  regions_.erase(found);
}

void WeightsStore::check_conservation() const {
  std::uint64_t sum = 0;
  for (const auto& [id, region] : regions_) sum += region.size_bytes;
  ensures(sum == held_bytes_, "bytes are conserved over all weights regions");
  ensures(held_bytes_ <= limit_bytes_,
          "weights regions hold at most the capacity, or what was restored");
}

}  // namespace leasehold
