#include "broker/books/extents.hpp"

#include <iterator>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {

std::string_view name(ExtentState state) {
  constexpr std::string_view kNames[kExtentStateCount] = {
      "Free", "Owned", "Draining", "Scrubbing", "Retained", "Quarantined", "Held"};
  return kNames[static_cast<unsigned>(state)];
}

std::uint64_t ExtentBook::size_for(std::uint64_t block_bytes) const {
  std::uint64_t size = choose_extent_size(capacity_bytes(), block_bytes, max_extents_);
  while (capacity_bytes(MemoryPool::Swap) / size > max_extents_) size *= 2;
  return size;
}

void ExtentBook::choose_size(std::uint64_t block_bytes) {
  expects(records_.empty(), "no extent has another size");
  extent_size_bytes_ = size_for(block_bytes);
}

/// Limits the number, because more than kMaxExtents extents fit if the capacity was raised after
/// the size was chosen.
std::uint32_t ExtentBook::capacity_extents(MemoryPool pool) const {
  if (extent_size_bytes_ == 0) return 0;
  const std::uint64_t count = capacity_bytes(pool) / extent_size_bytes_;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kMaxExtents));
}

std::uint32_t ExtentBook::free_extents(MemoryPool pool) const {
  const std::uint32_t all = capacity_extents(pool);
  return all - std::min(all, used_[index_of(pool)]);
}

std::vector<ExtentId> ExtentBook::held_by(AttachmentId worker) const {
  const auto found = held_.find(worker);
  if (found == held_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::uint32_t ExtentBook::free_extents_for(AttachmentId worker) const {
  std::uint32_t count = free_extents();
  for (const ExtentId extent : held_by(worker)) count += records_.at(extent).unavailable ? 0 : 1;
  return count;
}

std::vector<ExtentId> ExtentBook::take(MemoryPool pool, std::uint32_t count,
                                       const Borrower& borrower) {
  const bool kv = pool == MemoryPool::Kv;
  expects(count <= (kv ? free_extents_for(borrower.worker) : free_extents(pool)),
          "only free extents are taken");
  std::vector<ExtentId> taken;
  for (const ExtentId id : held_by(borrower.worker)) {
    if (!kv || taken.size() == count || records_.at(id).unavailable) continue;
    ExtentRecord& record = change(id, ExtentState::Owned)->second;
    accounts_.settle(record, MemoryFate::ClearedForReuse);
    static_cast<ExtentAccount&>(record) = {borrower.lease, borrower.tenant, pool};
    accounts_.lend(record);
    taken.push_back(id);
  }
  while (taken.size() < count) {
    const ExtentId id{next_id_++};
    const auto added = records_.emplace(id, ExtentRecord{{borrower.lease, borrower.tenant, pool}});
    accounts_.lend(added.first->second);
    ++used_[index_of(pool)];
    taken.push_back(id);
  }
  return taken;
}

ExtentBook::Records::iterator ExtentBook::change(ExtentId extent, ExtentState to) {
  const auto found = records_.find(extent);
  expects(found != records_.end(), "only extents that are not free are moved");
  expects(may_become(found->second.state, to), "an extent moves as its state table says");
  const AttachmentId worker = found->second.lent_to;
  if (found->second.state == ExtentState::Held) held_[worker].erase(extent);
  if (to == ExtentState::Held) held_[worker].insert(extent);
  if (held_.contains(worker) && held_[worker].empty()) held_.erase(worker);
  found->second.state = to;
  return found;
}

void ExtentBook::move(ExtentId extent, ExtentState to) {
  expects(to != ExtentState::Free, "free() names the evidence");
  ExtentRecord& record = change(extent, to)->second;
  if (to == ExtentState::Held) accounts_.settle(record, MemoryFate::Held);
  if (to == ExtentState::Quarantined) accounts_.settle(record, MemoryFate::Quarantined);
}

void ExtentBook::free(ExtentId extent, MemoryFate fate) {
  expects(wire::is_final(fate), "memory that is free has no other fate later");
  const auto found = change(extent, ExtentState::Free);
  accounts_.settle(found->second, fate);
  --used_[index_of(found->second.pool)];
  records_.erase(found);
}

void ExtentBook::adopt(ExtentId extent, LeaseId lease) {
  const auto found = records_.find(extent);
  expects(found != records_.end() && found->second.state == ExtentState::Retained,
          "only retained extents are adopted");
  ExtentRecord& record = change(extent, ExtentState::Owned)->second;
  accounts_.settle(record, MemoryFate::Adopted, lease);
  const LeaseId from = std::exchange(record.lease, lease);
  record.fate = MemoryFate::Open;
  accounts_.lend(record, from);
}

ExtentRecord* ExtentBook::find(ExtentId extent) {
  const auto found = records_.find(extent);
  return found == records_.end() ? nullptr : &found->second;
}

void ExtentBook::mark_unavailable(ExtentId extent) {
  const auto found = records_.find(extent);
  expects(found != records_.end(), "only extents in use can be unavailable");
  found->second.unavailable = true;
}

void ExtentBook::mark_available(ExtentId extent) {
  const auto found = records_.find(extent);
  expects(found != records_.end(), "only extents in use are delivered");
  found->second.unavailable = false;
}

void ExtentBook::restore_size(std::uint64_t extent_size_bytes) {
  expects(extent_size_bytes_ == 0, "the extent size is chosen once");
  extent_size_bytes_ = extent_size_bytes;
}

void ExtentBook::restore(ExtentId extent, const ExtentRecord& record) {
  expects(extent_size_bytes_ != 0 && free_bytes(record.pool) >= extent_size_bytes_,
          "there is room for it");
  const bool added = records_.emplace(extent, record).second;
  expects(added, "an extent is restored once");
  if (record.state == ExtentState::Held) held_[record.lent_to].insert(extent);
  accounts_.restore(record);
  ++used_[index_of(record.pool)];
  start_above(extent.value);
}

const ExtentRecord* ExtentBook::find(ExtentId extent) const {
  const auto found = records_.find(extent);
  return found == records_.end() ? nullptr : &found->second;
}

std::vector<ExtentId> ExtentBook::of_pool(MemoryPool pool,
                                          std::span<const ExtentId> extents) const {
  std::vector<ExtentId> found;
  std::ranges::copy_if(extents, std::back_inserter(found),
                       [&](ExtentId extent) { return records_.at(extent).pool == pool; });
  return found;
}

std::array<std::uint64_t, kExtentStateCount> ExtentBook::bytes_by_state(MemoryPool pool) const {
  std::array<std::uint64_t, kExtentStateCount> bytes{};
  bytes[static_cast<unsigned>(ExtentState::Free)] = free_bytes(pool);
  for (const auto& [id, record] : records_) {
    if (record.pool != pool) continue;
    bytes[static_cast<unsigned>(record.state)] += extent_size_bytes_;
  }
  return bytes;
}

void ExtentBook::check_conservation() const {
  for (const MemoryPool pool : kMemoryPools) {
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : bytes_by_state(pool)) sum += bytes;
    ensures(sum == capacity_bytes(pool), "bytes are conserved over all extent states of a pool");
    ensures(used_[index_of(pool)] <= kMaxExtents, "a pool has a bounded number of extents");
  }
}

}  // namespace leasehold
