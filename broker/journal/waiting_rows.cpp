#include "broker/journal/waiting_rows.hpp"

#include <algorithm>

namespace leasehold::journal {
namespace {

template <class... Kinds>
bool is_one_of(const Row& row) {
  return (std::holds_alternative<Kinds>(row) || ...);
}

/// True for the rows of objects that end when they are no longer used.
bool may_end(const Row& row) {
  return is_one_of<LeaseRow, ExtentRow, RegionRow>(row);
}

bool is_end(const Row& row) {
  return is_one_of<LeaseGone, ExtentGone, RegionGone>(row);
}

/// True for the rows that no later row replaces.
bool is_record(const Row& row) {
  return is_one_of<OperatorActionRow, UsageRow, RevocationRow, AuditKeyRow>(row);
}

/// The later record, with what was settled before. A record after the lease's end does not repeat
/// how it ended.
LeaseErasedRow merged(const LeaseErasedRow& earlier, const LeaseErasedRow& later) {
  LeaseErasedRow sum = later.record.scope ? later : earlier;
  sum.before = earlier.before;
  sum.record.open_extents = later.record.open_extents;
  sum.record.state = later.record.state;
  sum.record.settled = earlier.record.settled;
  for (const auto& each : later.record.settled) add_to(sum.record.settled, each);
  return sum;
}

/// True for a lease whose first grant was refused. Memory that it adopted has left another lease,
/// whose record names this one.
bool was_refused(const LeaseGrantedRow& granted, const LeaseErasedRow& erased) {
  const auto& entries = granted.record.granted;
  return granted.record.opens && erased.record.state == wire::ErasureState::Erased &&
         std::ranges::none_of(entries,
                              [](const auto& each) { return each.adopted_from.has_value(); });
}

}  // namespace

WaitingRows::Key WaitingRows::key_of(const Row& row) {
  return std::visit(
      [&](const auto& each) -> Key {
        if constexpr (requires { id_of(each); }) return id_of(each);
        return std::pair(row.index(), is_record(row) ? ++records_ : 0);
      },
      row);
}

void WaitingRows::note_recorded(const Row& row) {
  if (is_end(row)) {
    recorded_.erase(key_of(row));
  } else if (may_end(row)) {
    recorded_.insert(key_of(row));
  }
}

void WaitingRows::add(const Batch& batch, std::int64_t now_unix_ms) {
  is_durable_ = is_durable_ || batch.durable || batch.synced_later;
  for (const Row& row : batch.rows) {
    if (std::holds_alternative<UsageRow>(row)) continue;
    if (const auto* granted = std::get_if<LeaseGrantedRow>(&row)) {
      add(*granted, now_unix_ms);
    } else if (const auto* erased = std::get_if<LeaseErasedRow>(&row)) {
      add(*erased, now_unix_ms);
    } else if (const Key key = key_of(row); is_end(row) && !recorded_.contains(key)) {
      rows_.erase(key);
    } else {
      rows_.insert_or_assign(key, row);
    }
  }
}

void WaitingRows::note_gap(LeaseId lease, std::uint64_t wire::AuditGapRecord::* count,
                           std::int64_t now_unix_ms) {
  if (!gap_) gap_.emplace().since_unix_ms = now_unix_ms;
  ++((*gap_).*count);
  std::vector<LeaseId>& leases = gap_->leases;
  const bool is_known = std::ranges::find(leases, lease) != leases.end();
  if (!is_known && leases.size() < wire::AuditGapRecord::kMaxLeases) leases.push_back(lease);
}

void WaitingRows::add(const LeaseGrantedRow& row, std::int64_t now_unix_ms) {
  note_gap(row.record.lease, &wire::AuditGapRecord::grants, now_unix_ms);
  const auto [place, is_new] = rows_.try_emplace(MemoryKey{row.record.lease, 0}, row);
  if (is_new) return;
  auto& sum = std::get<LeaseGrantedRow>(place->second);
  for (const auto& each : row.record.granted) add_to(sum.record.granted, each);
}

void WaitingRows::add(const LeaseErasedRow& row, std::int64_t now_unix_ms) {
  note_gap(row.record.lease, &wire::AuditGapRecord::erasures, now_unix_ms);
  const auto [place, is_new] = rows_.try_emplace(MemoryKey{row.record.lease, 1}, row);
  auto& sum = std::get<LeaseErasedRow>(place->second);
  if (!is_new) sum = merged(sum, row);
  const auto granted = rows_.find(MemoryKey{row.record.lease, 0});
  if (granted == rows_.end()) return;
  if (!was_refused(std::get<LeaseGrantedRow>(granted->second), sum)) return;
  rows_.erase(granted);
  rows_.erase(place);
}

void WaitingRows::written(const Batch& batch) {
  for (const auto& [key, row] : rows_) note_recorded(row);
  for (const Row& row : batch.rows) note_recorded(row);
  rows_.clear();
  is_durable_ = false;
  gap_.reset();
}

bool WaitingRows::is_revocation(const Row& row) const {
  const auto* lease = std::get_if<LeaseRow>(&row);
  return lease != nullptr && lease->state != LeaseState::Live && recorded_.contains(lease->id);
}

bool WaitingRows::has_revocations(const Batch& batch) const {
  const auto revokes = [this](const Row& row) { return is_revocation(row); };
  return std::ranges::any_of(batch.rows, revokes) ||
         std::ranges::any_of(rows_, revokes, &std::pair<const Key, Row>::second);
}

std::uint64_t WaitingRows::lease_records() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(rows_, [](const auto& entry) {
    return is_one_of<LeaseGrantedRow, LeaseErasedRow>(entry.second);
  }));
}

}  // namespace leasehold::journal
