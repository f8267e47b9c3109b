#include "broker/decide/lease/revoke.hpp"

#include <fmt/format.h>

#include "broker/decide/lease/adapter_leases.hpp"
#include "broker/decide/lease/rebind.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/succession.hpp"
#include "broker/decide/tenant/publish.hpp"

namespace leasehold {
namespace {

/// What follows from the end of a lease, for an error.
std::string_view after_end(wire::LeaseScope scope) {
  switch (scope) {
    case wire::LeaseScope::Engine:
    case wire::LeaseScope::Tenant:
      return "acquire a new lease";
    case wire::LeaseScope::Shared:
      return "its text is no longer published";
    case wire::LeaseScope::Adapter:
      return "its worker loads the adapter again when a request needs it";
  }
  return "";
}

void answer_pending_calls(Decision& decision, LeaseRecord& record) {
  const auto revoked = require_live(record);
  for (const CallId call : record.calls.take_callers())
    decision.reply(call, std::unexpected(revoked.error()));
}

void notify_holder(Decision& decision, const LeaseRecord& record) {
  const RevokeReason reason = reason_of(record.lease);
  const bool is_gone = reason == RevokeReason::HolderGone || record.holder == ConnectionId{};
  if (is_gone || !record.acquired) return;
  decision.add(effect::NotifyHolder{
      record.holder, {.lease = record.id(), .scope = record.scope, .reason = reason}});
}

void add_revocation(Decision& decision, const LeaseRecord& record, RevokeReason reason) {
  const Worker* worker = decision.state.workers.find(record.worker());
  decision.touched.revocations.push_back({.lease = record.id(),
                                          .scope = record.scope,
                                          .tenant = record.tenant,
                                          .worker_name = worker == nullptr ? "" : worker->name,
                                          .reason = reason,
                                          .at_boottime_ns = decision.now.boottime_ns});
}

void drain_extents(Decision& decision, const LeaseRecord& record) {
  for (const ExtentId extent : record.extents) {
    if (decision.state.extents.find(extent)->state != ExtentState::Owned) continue;
    decision.state.extents.move(extent, ExtentState::Draining);
    record_extent(decision, extent, &record);
  }
}

}  // namespace

void add_store_words(Decision& decision, ChangesByWorker changes) {
  for (auto& [worker, words] : changes) {
    const WorkerId index = decision.state.workers.find(worker)->index;
    decision.add(effect::StoreWords{index, std::move(words), decision.now});
  }
}

void add_quiet_watches(Decision& decision, std::span<const LeaseId> leases) {
  std::map<std::pair<AttachmentId, Touches>, std::vector<LeaseId>> watches;
  for (const LeaseId id : leases) {
    const LeaseRecord& record = decision.state.leases.at(id);
    const bool engine = record.scope == wire::LeaseScope::Engine;
    const Touches scope = engine ? Touches::WeightsAndScratch : Touches::TenantMemory;
    watches[{record.worker(), scope}].push_back(id);
  }
  for (auto& [key, waiting] : watches) {
    const Worker& worker = *decision.state.workers.find(key.first);
    if (worker.state == WorkerState::Gone || worker.segment_lost) continue;
    decision.add(effect::BeginQuietWatch{key.first, key.second, std::move(waiting)});
  }
}

std::vector<LeaseId> revoke_leases(Decision& decision, std::span<const LeaseId> leases,
                                   RevokeReason reason, HolderNotice notice) {
  std::vector<LeaseId> revoked;
  ChangesByWorker changes;
  for (const LeaseId id : leases) {
    LeaseRecord& record = decision.state.leases.at(id);
    auto* live = std::get_if<Lease<Live>>(&record.lease);
    if (live == nullptr) continue;
    changes[record.worker()].push_back({id, LeaseState::Revoked, reason});
    record.lease = revoke(std::move(*live), reason, decision.now);
    note_rebindable(decision.state, record, reason, decision.now);
    revoked.push_back(id);
  }
  // The words come first, so that the leases stop as soon as possible.
  add_store_words(decision, std::move(changes));
  add_quiet_watches(decision, revoked);
  for (const LeaseId id : revoked) {
    LeaseRecord& record = decision.state.leases.at(id);
    if (notice == HolderNotice::Send) notify_holder(decision, record);
    record_lease(decision, record);
    if (record.scope == wire::LeaseScope::Adapter) record_adapter_end(decision, record);
    if (is_revocation(reason)) add_revocation(decision, record, reason);
    drain_extents(decision, record);
    answer_pending_calls(decision, record);
    end_succession(decision, record);
    keep_lost_text(decision.state, record);
  }
  return revoked;
}

Result<void> require_live(const LeaseRecord& record) {
  if (record.is(LeaseState::Live)) return {};
  const Errc code = record.is(LeaseState::Revoked) ? Errc::LeaseRevoked : Errc::LeaseFenced;
  return std::unexpected(Error{code,
                               fmt::format("lease {} was revoked ({}); {}", to_string(record.id()),
                                           name(reason_of(record.lease)), after_end(record.scope)),
                               failure_scope_of(record)});
}

FailureScope failure_scope_of(const LeaseRecord& record) {
  switch (record.scope) {
    case wire::LeaseScope::Engine:
    case wire::LeaseScope::Tenant:
      return FailureScope::Tenant;
    case wire::LeaseScope::Shared:
      return FailureScope::Shared;
    case wire::LeaseScope::Adapter:
      return FailureScope::Adapter;
  }
  return FailureScope::Tenant;
}

Result<std::vector<LeaseId>> leases_named(State& state, const std::optional<LeaseId>& lease,
                                          const std::optional<TenantId>& tenant) {
  if (lease.has_value() == tenant.has_value()) {
    return fail(Errc::BadRequest,
                fmt::format("name exactly one of lease and tenant; {} were given", lease ? 2 : 0));
  }
  if (lease) {
    const LeaseRecord& record = *TRY(state.leases.find(*lease));
    if (record.is(LeaseState::Fenced)) {
      return std::unexpected(Error{Errc::LeaseFenced,
                                   fmt::format("lease {} is fenced already ({})", to_string(*lease),
                                               name(reason_of(record.lease))),
                                   failure_scope_of(record)});
    }
    return std::vector{*lease};
  }
  if (state.tenants.find(*tenant) == nullptr) {
    return fail(Errc::UnknownTenant,
                fmt::format("no tenant {}; see `brokerctl tenants`", tenant->value));
  }
  return open_leases_where(state, [&](const LeaseRecord& record) {
    return record.scope == wire::LeaseScope::Tenant && record.tenant == *tenant &&
           record.is(LeaseState::Live);
  });
}

std::string object_name(const std::optional<LeaseId>& lease,
                        const std::optional<TenantId>& tenant) {
  return lease ? "lease:" + to_string(*lease) : "tenant:" + tenant->value;
}

}  // namespace leasehold
