#include "broker/decide/memory/memory_rows.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace leasehold {
namespace {

/// What a decision changed about one lease.
struct LeaseChanges {
  TenantId tenant;
  std::vector<wire::MemoryGranted> granted;
  std::vector<wire::MemorySettled> settled;
  bool opens = false;
  bool closes = false;
};
using ChangesByLease = std::map<LeaseId, LeaseChanges>;

void add(ChangesByLease& changes, const MemoryChange& change, std::uint64_t extent_bytes) {
  LeaseChanges& lease = changes[change.lease];
  lease.tenant = change.tenant;
  if (change.from) {
    add_to(lease.settled, {.pool = change.pool,
                           .from = *change.from,
                           .to = change.to,
                           .adopted_by = change.other,
                           .extents = 1,
                           .bytes = extent_bytes});
  } else {
    add_to(
        lease.granted,
        {.pool = change.pool, .adopted_from = change.other, .extents = 1, .bytes = extent_bytes});
  }
}

ChangesByLease changes_of(Decision& decision, std::uint64_t extent_size_bytes) {
  ChangesByLease changes;
  for (const MemoryChange& change : decision.state.extents.accounts().take_changes())
    add(changes, change, extent_size_bytes);
  for (const auto& [lease, tenant] : decision.touched.closed) {
    changes[lease].tenant = tenant;
    changes[lease].closes = true;
  }
  for (const Effect& effect : decision.effects()) {
    const auto* opened = std::get_if<effect::PublishGrant>(&effect);
    if (opened == nullptr) continue;
    const auto found = changes.find(opened->lease);
    if (found != changes.end()) found->second.opens = true;
  }
  return changes;
}

std::string worker_name(const State& state, const LeaseRecord& record) {
  const Worker* worker = state.workers.find(record.worker());
  return worker == nullptr ? "" : worker->name;
}

std::string adapter_digest(const State& state, const LeaseRecord& record) {
  const auto adapter = record.adapter();
  const journal::AdapterRow* row = adapter ? state.adapters.find(*adapter) : nullptr;
  return row != nullptr && row->version == record.adapter_version ? row->digest : "";
}

journal::LeaseGrantedRow granted_row(const Decision& decision, LeaseId id, LeaseChanges& changes) {
  const LeaseRecord& record = *decision.state.leases.in_slot(id.slot);
  return {.record = {.lease = id,
                     .scope = record.scope,
                     .tenant = changes.tenant.value,
                     .worker = worker_name(decision.state, record),
                     .attachment = record.worker(),
                     .adapter_digest = adapter_digest(decision.state, record),
                     .opens = changes.opens,
                     .granted = std::move(changes.granted)},
          .at_boottime_ns = decision.now.boottime_ns};
}

ErasureState state_after_end(const MemoryAccounts::Unreturned& left) {
  if (left.quarantined != 0) return ErasureState::Quarantined;
  return left.held != 0 ? ErasureState::Held : ErasureState::Erased;
}

/// What was left of an ended lease before these changes.
MemoryAccounts::Unreturned left_before(MemoryAccounts::Unreturned left,
                                       const std::vector<wire::MemorySettled>& settled) {
  const auto count_of = [&left](MemoryFate fate) -> std::uint32_t* {
    if (fate == MemoryFate::Held) return &left.held;
    return fate == MemoryFate::Quarantined ? &left.quarantined : nullptr;
  };
  for (const wire::MemorySettled& each : settled) {
    if (std::uint32_t* from = count_of(each.from)) *from += each.extents;
    if (std::uint32_t* to = count_of(each.to)) *to -= each.extents;
  }
  return left;
}

/// The worker erases the key before it answers lease.unmap, and a key ends with its process.
bool is_spill_key_destroyed(const State& state, const LeaseRecord& record) {
  if (!state.config.lends_spill || record.scope != wire::LeaseScope::Tenant) return false;
  const Worker* worker = state.workers.find(record.worker());
  return record.is_unmapped || worker == nullptr || worker->state == WorkerState::Gone;
}

/// Adds how the lease ended, as far as it has.
void add_end(const Decision& decision, const LeaseRecord& record, journal::LeaseErasedRow& row) {
  row.record.scope = record.scope;
  row.record.worker = worker_name(decision.state, record);
  row.record.adapter_digest = adapter_digest(decision.state, record);
  if (record.is(LeaseState::Live)) return;
  row.record.reason = name(reason_of(record.lease));
  if (const auto* revoked = std::get_if<Lease<Revoked>>(&record.lease))
    row.revoked_boottime_ns = revoked->state().at.boottime_ns;
  if (const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease)) {
    row.revoked_boottime_ns = fenced->state().revoked_at.boottime_ns;
    row.fenced_boottime_ns = fenced->state().at.boottime_ns;
    row.record.proof = name(fenced->state().proof);
    row.record.spill_key_destroyed = is_spill_key_destroyed(decision.state, record);
  }
}

journal::LeaseErasedRow erased_row(const Decision& decision, LeaseId id, LeaseChanges& changes) {
  const State& state = decision.state;
  const LeaseRecord* open = state.leases.find_open(id);
  const MemoryAccounts::Unreturned left = state.extents.accounts().unreturned(id);
  const bool was_open = open != nullptr || changes.closes;
  journal::LeaseErasedRow row{
      .record = {.lease = id,
                 .tenant = changes.tenant.value,
                 .open_extents =
                     open == nullptr ? 0 : static_cast<std::uint32_t>(open->extents.size()),
                 .state = open != nullptr ? ErasureState::Open : state_after_end(left)},
      .before =
          was_open ? ErasureState::Open : state_after_end(left_before(left, changes.settled))};
  row.record.settled = std::move(changes.settled);
  const LeaseRecord* record = state.leases.in_slot(id.slot);
  if (was_open && record != nullptr && record->id() == id) add_end(decision, *record, row);
  return row;
}

}  // namespace

std::vector<journal::Row> memory_rows(Decision& decision, std::uint64_t extent_size_bytes) {
  ChangesByLease changes = changes_of(decision, extent_size_bytes);
  std::vector<journal::Row> rows;
  for (auto& [id, each] : changes)
    if (!each.granted.empty()) rows.emplace_back(granted_row(decision, id, each));
  for (auto& [id, each] : changes)
    if (!each.settled.empty() || each.closes) rows.emplace_back(erased_row(decision, id, each));
  return rows;
}

}  // namespace leasehold
