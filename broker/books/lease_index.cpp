#include "broker/books/lease_index.hpp"

#include <algorithm>

#include "broker/books/lease_book.hpp"

namespace leasehold {
namespace {

/// The time by which the lease is sorted. Live: the next deadline, or zero without one. Revoked:
/// the time of the revocation. Fenced: the time of the fence.
TimePoint time_of(const LeaseRecord& record) {
  if (const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease)) return fenced->state().at;
  if (!record.is(LeaseState::Live)) return record.revoked_at();
  if (record.drain_deadline == TimePoint{}) return record.deadline;
  if (record.deadline == TimePoint{}) return record.drain_deadline;
  return std::min(record.deadline, record.drain_deadline);
}

/// Zero unless the lease is Live: for a revoked lease, the fence timeout replaces the call timeout.
TimePoint call_pending_since(const LeaseRecord& record) {
  return record.is(LeaseState::Live) ? record.calls.waiting_since : TimePoint{};
}

/// The tenant whose KV memory the lease is; an adapter's owner runs no requests under its lease.
TenantId holder_of(const LeaseRecord& record) {
  return record.scope == wire::LeaseScope::Adapter ? TenantId{} : record.tenant;
}

std::optional<TenantId> adapter_owner_of(const LeaseRecord& record) {
  const bool counts = record.scope == wire::LeaseScope::Adapter && !record.is(LeaseState::Fenced);
  return counts ? std::optional(record.tenant) : std::nullopt;
}

}  // namespace

LeaseIndex::ByTime* LeaseIndex::set_of(const Entry& entry) {
  if (entry.state == LeaseState::Live) return entry.time == TimePoint{} ? nullptr : &deadlines_;
  WorkerEntry& worker = workers_[entry.worker];
  return entry.state == LeaseState::Revoked ? &worker.revoked : &worker.fenced;
}

void LeaseIndex::enter(const LeaseRecord& record) {
  const LeaseId id = record.id();
  erase(id);
  const Entry& entry = entries_[id] = Entry{.worker = record.worker(),
                                            .tenant = holder_of(record),
                                            .adapter_owner = adapter_owner_of(record),
                                            .charged = record.quota_blocks(),
                                            .state = record.state(),
                                            .time = time_of(record),
                                            .call_pending_since = call_pending_since(record)};
  workers_[entry.worker].open.insert(id);
  add_to_holding(entry);
  if (entry.adapter_owner) adapters_[*entry.adapter_owner].insert(id);
  if (ByTime* set = set_of(entry)) set->emplace(entry.time, id);
  if (entry.call_pending_since != TimePoint{})
    workers_[entry.worker].call_pending.emplace(entry.call_pending_since, id);
}

void LeaseIndex::erase(LeaseId lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  if (ByTime* set = set_of(entry)) set->erase({entry.time, lease});
  remove_from_holding(entry);
  if (entry.adapter_owner) {
    const auto owned = adapters_.find(*entry.adapter_owner);
    owned->second.erase(lease);
    if (owned->second.empty()) adapters_.erase(owned);
  }
  const auto worker = workers_.find(entry.worker);
  worker->second.open.erase(lease);
  worker->second.call_pending.erase({entry.call_pending_since, lease});
  if (worker->second.open.empty()) workers_.erase(worker);
  entries_.erase(found);
}

/// Leases of other scopes than Tenant have no tenant here.
void LeaseIndex::add_to_holding(const Entry& entry) {
  if (entry.tenant.value.empty() || entry.state == LeaseState::Fenced) return;
  Holding& holding = holdings_[entry.tenant][entry.worker];
  const bool live = entry.state == LeaseState::Live;
  holding.leases += 1;
  holding.live += live ? 1 : 0;
  holding.charged_blocks += entry.charged;
  holding.live_blocks += live ? entry.charged : 0;
}

void LeaseIndex::remove_from_holding(const Entry& entry) {
  if (entry.tenant.value.empty() || entry.state == LeaseState::Fenced) return;
  const auto tenant = holdings_.find(entry.tenant);
  Holding& holding = tenant->second.at(entry.worker);
  const bool live = entry.state == LeaseState::Live;
  holding.leases -= 1;
  holding.live -= live ? 1 : 0;
  holding.charged_blocks -= entry.charged;
  holding.live_blocks -= live ? entry.charged : 0;
  if (holding.leases == 0) tenant->second.erase(entry.worker);
  if (tenant->second.empty()) holdings_.erase(tenant);
}

const LeaseIndex::Holdings& LeaseIndex::of(const TenantId& tenant) const {
  static const Holdings kNothing;
  const auto found = holdings_.find(tenant);
  return found == holdings_.end() ? kNothing : found->second;
}

std::uint64_t LeaseIndex::charged(const TenantId& tenant) const {
  std::uint64_t charged = 0;
  for (const auto& [worker, holding] : of(tenant)) charged += holding.charged_blocks;
  return charged;
}

const std::set<LeaseId>& LeaseIndex::adapters_of(const TenantId& owner) const {
  static const std::set<LeaseId> kNothing;
  const auto found = adapters_.find(owner);
  return found == adapters_.end() ? kNothing : found->second;
}

const LeaseIndex::WorkerEntry& LeaseIndex::of(AttachmentId worker) const {
  static const WorkerEntry kNothing;
  const auto found = workers_.find(worker);
  return found == workers_.end() ? kNothing : found->second;
}

}  // namespace leasehold
