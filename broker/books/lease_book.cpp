#include "broker/books/lease_book.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {

std::vector<CallId> PendingCalls::take_callers() {
  std::vector<CallId> callers;
  for (const PendingGrant& grant : grants) callers.push_back(grant.call);
  callers.insert(callers.end(), shrinks.begin(), shrinks.end());
  if (open) callers.push_back(*open);
  grants.clear();
  shrinks.clear();
  open.reset();
  return callers;
}

TimePoint LeaseRecord::deadline_after(TimePoint now) const {
  const TimePoint renewed = now + ttl;
  return last_deadline == TimePoint{} ? renewed : std::min(renewed, last_deadline);
}

TimePoint LeaseRecord::revoked_at() const {
  if (end.word_stored_at != TimePoint{}) return end.word_stored_at;
  if (const auto* fenced = std::get_if<Lease<Fenced>>(&lease)) return fenced->state().revoked_at;
  expects(std::holds_alternative<Lease<Revoked>>(lease), "a live lease was not revoked");
  return std::get<Lease<Revoked>>(lease).state().at;
}

LeaseBook::LeaseBook(std::uint32_t slot_count) : slots_(slot_count) {
  for (std::uint32_t slot = 0; slot < slot_count; ++slot) free_slots_.push_back(slot);
}

void LeaseBook::start_above(std::uint32_t slot, std::uint64_t generation) {
  expects(!slots_[slot].record, "a lease has its slot to itself");
  slots_[slot].generation = std::max(slots_[slot].generation, generation);
}

LeaseRecord& LeaseBook::restore(LeaseRecord record) {
  const LeaseId id = record.id();
  const auto free = std::ranges::find(free_slots_, id.slot);
  expects(free != free_slots_.end(), "a lease is restored into a free slot");
  free_slots_.erase(free);
  Slot& slot = slots_[id.slot];
  slot.generation = id.generation;
  slot.record.emplace(std::move(record));
  open_.insert(id);
  index_.enter(*slot.record);
  return *slot.record;
}

void LeaseBook::enter_in_index(LeaseId id) {
  if (const LeaseRecord* record = find_open(id)) index_.enter(*record);
}

std::vector<LeaseId> LeaseBook::leases_on(AttachmentId worker) const {
  const auto& open = index_.of(worker).open;
  return {open.begin(), open.end()};
}

LeaseRecord& LeaseBook::open(AttachmentId worker, wire::LeaseScope scope) {
  expects(has_free_slot(), "a lease is opened in a free slot");
  const std::uint32_t index = free_slots_.front();
  free_slots_.pop_front();
  Slot& slot = slots_[index];
  const LeaseId id{.slot = index, .generation = ++slot.generation};
  slot.record.emplace(LeaseRecord{.lease = open_lease(id, worker), .scope = scope});
  open_.insert(id);
  highest_generation_ = std::max(highest_generation_, id.generation);
  index_.enter(*slot.record);
  return *slot.record;
}

Result<LeaseRecord*> LeaseBook::find(LeaseId id) {
  if (id.slot >= slots_.size() || id.generation > slots_[id.slot].generation ||
      id.generation == 0) {
    return fail(Errc::UnknownLease,
                fmt::format("lease {} was never granted; see `brokerctl leases`", to_string(id)));
  }
  Slot& slot = slots_[id.slot];
  if (id.generation < slot.generation) {
    return fail(Errc::StaleGeneration,
                fmt::format("lease {} has ended; its slot is at generation {}; acquire a new lease",
                            to_string(id), slot.generation));
  }
  if (!slot.record) {  // closed before a broker restart
    return fail(Errc::StaleGeneration,
                fmt::format("lease {} has ended; acquire a new lease", to_string(id)));
  }
  return &*slot.record;
}

const LeaseRecord* LeaseBook::find_open(LeaseId id) const {
  return open_.contains(id) ? &*slots_[id.slot].record : nullptr;
}

const LeaseRecord* LeaseBook::in_slot(std::uint32_t slot) const {
  const bool has_record = slot < slots_.size() && slots_[slot].record;
  return has_record ? &*slots_[slot].record : nullptr;
}

void LeaseBook::close(LeaseRecord& record) {
  expects(record.is(LeaseState::Fenced) && record.extents.empty(),
          "a slot is used again only after fence and scrub");
  record.memory_returned = true;
  open_.erase(record.id());
  index_.erase(record.id());
  free_slots_.push_back(record.id().slot);
}

LeaseRecord& LeaseBook::at(LeaseId id) {
  expects(open_.contains(id), "the lease is open");
  return *slots_[id.slot].record;
}

}  // namespace leasehold
