#include "broker/books/lease_index.hpp"

#include <algorithm>

#include "broker/books/lease_book.hpp"

namespace leasehold {
namespace {

/// When something must be done about the lease, or since when it is owed. Zero: nothing is.
TimePoint time_of(const LeaseRecord& record) {
  if (const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease)) return fenced->state().at;
  if (!record.is(LeaseState::Live)) return record.revoked_at();
  if (record.drain_deadline == TimePoint{}) return record.deadline;
  if (record.deadline == TimePoint{}) return record.drain_deadline;
  return std::min(record.deadline, record.drain_deadline);
}

/// What is revoked is owed a fence, and nothing else.
TimePoint asked_of(const LeaseRecord& record) {
  return record.is(LeaseState::Live) ? record.asked_at : TimePoint{};
}

}  // namespace

LeaseIndex::ByTime* LeaseIndex::place_of(const Entry& entry) {
  if (entry.state == LeaseState::Live) return entry.time == TimePoint{} ? nullptr : &deadlines_;
  OfWorker& worker = workers_[entry.worker];
  return entry.state == LeaseState::Revoked ? &worker.revoked : &worker.fenced;
}

void LeaseIndex::enter(const LeaseRecord& record) {
  const LeaseId id = record.id();
  erase(id);
  const bool charged = !record.is(LeaseState::Fenced);
  const Entry& entry = entries_[id] = Entry{.worker = record.worker(),
                                            .tenant = record.tenant,
                                            .charged = charged ? record.charged_blocks : 0,
                                            .state = record.state(),
                                            .time = time_of(record),
                                            .asked = asked_of(record)};
  workers_[entry.worker].open.insert(id);
  if (entry.charged != 0) charged_[entry.tenant] += entry.charged;
  if (ByTime* place = place_of(entry)) place->emplace(entry.time, id);
  if (entry.asked != TimePoint{}) workers_[entry.worker].asked.emplace(entry.asked, id);
}

void LeaseIndex::erase(LeaseId lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  if (ByTime* place = place_of(entry)) place->erase({entry.time, lease});
  if (const auto charged = charged_.find(entry.tenant); charged != charged_.end()) {
    charged->second -= entry.charged;
    if (charged->second == 0) charged_.erase(charged);
  }
  const auto worker = workers_.find(entry.worker);
  worker->second.open.erase(lease);
  worker->second.asked.erase({entry.asked, lease});
  if (worker->second.open.empty()) workers_.erase(worker);
  entries_.erase(found);
}

std::uint64_t LeaseIndex::charged(const TenantId& tenant) const {
  const auto found = charged_.find(tenant);
  return found == charged_.end() ? 0 : found->second;
}

const LeaseIndex::OfWorker& LeaseIndex::of(AttachmentId worker) const {
  static const OfWorker kNothing;
  const auto found = workers_.find(worker);
  return found == workers_.end() ? kNothing : found->second;
}

}  // namespace leasehold
