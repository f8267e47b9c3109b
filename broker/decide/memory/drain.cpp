// `brokerctl drain`: leases accept no new requests and end with their last request, at the latest
// after the grace. A drained tenant or worker gets no new lease until `brokerctl undrain`.

#include "broker/decide/lease/revoke.hpp"

#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/unavailable.hpp"
#include "broker/decide/worker/worker_replace.hpp"

namespace leasehold {
namespace {

Error refusal_of(const wire::LeaseDrain& drain, LeaseId lease) {
  if (drain.worker) return worker_draining(*drain.worker);
  if (drain.tenant) return tenant_draining(*drain.tenant);
  return {Errc::Draining, fmt::format("lease {} was drained before its worker had mapped it; "
                                      "acquire a new lease",
                                      to_string(lease))};
}

std::string worker_object(const std::string& worker) {
  return "worker:" + worker;
}

Result<void> require_tenant_leases(const State& state, std::span<const LeaseId> leases) {
  for (const LeaseId id : leases) {
    if (state.leases.find_open(id)->scope == wire::LeaseScope::Tenant) continue;
    return fail(
        Errc::BadRequest,
        fmt::format("lease {} has no requests of its own; revoke it instead", to_string(id)));
  }
  return {};
}

/// Sets whether a tenant or a worker is draining: while it is, it gets no new lease.
Result<void> set_draining(Decision& decision, const std::optional<TenantId>& tenant,
                          const std::optional<std::string>& worker, bool draining) {
  if (tenant) {
    if (!decision.state.tenants.set_draining(*tenant, draining)) {
      return fail(Errc::UnknownTenant,
                  fmt::format("no tenant {}; see `brokerctl tenants`", tenant->value));
    }
    decision.touched.tenants.push_back(*tenant);
    if (draining) end_retention_of(decision, *tenant);
  }
  if (worker) {
    Worker& found = *TRY(find_worker(decision.state, *worker));
    found.draining = draining;
    if (!draining) drop_replacement(decision, found);
    send_admission(decision, found);
    decision.touch(found.id);
  }
  return {};
}

/// Only the holder can replace the lease before the deadline.
void notify_draining(Decision& decision, const LeaseRecord& record) {
  const bool is_held = record.is(LeaseState::Live) && record.acquired;
  if (!is_held || record.holder == ConnectionId{}) return;
  decision.add(effect::NotifyDraining{record.holder, {.lease = record.id()}});
}

Result<std::vector<LeaseId>> leases_to_drain(State& state, const wire::LeaseDrain& drain) {
  if (!drain.worker) return leases_named(state, drain.lease, drain.tenant);
  const AttachmentId worker = TRY(find_worker(state, *drain.worker))->id;
  return open_leases_where(state, [worker](const LeaseRecord& record) {
    return record.worker() == worker && record.scope == wire::LeaseScope::Tenant &&
           record.is(LeaseState::Live);
  });
}

}  // namespace

void start_drain(Decision& decision, LeaseRecord& record, const Drain& drain,
                 const Error& refusal) {
  if (!record.is(LeaseState::Live)) return;
  if (record.is_acquiring()) return abandon_acquire(decision, record, refusal);
  const bool reclaims = drain.reason == RevokeReason::PreemptedByPriority ||
                        record.drain_reason == RevokeReason::PreemptedByPriority;
  const bool drains_sooner =
      record.drain_deadline != TimePoint{} && record.drain_deadline <= drain.until;
  if (reclaims && drains_sooner) return;
  record.drain_deadline = drain.until;
  record.drain_reason = drain.reason;
  decision.touch(record.id());
  decision.record(events::LeaseDraining{.lease = record.id(),
                                        .tenant = record.tenant.value,
                                        .deadline_boottime_ns = drain.until.boottime_ns});
  decision.add(effect::SetDrainDeadline{record.id(), drain.until, record.worker()});
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseDrain& drain) {
  if (drain.grace_ms < 0 || drain.grace_ms > 86'400'000) {
    return fail(Errc::BadRequest,
                fmt::format("grace_ms is {}; it must be 0 to 86400000", drain.grace_ms));
  }
  std::vector<LeaseId> leases = TRY(leases_to_drain(decision.state, drain));
  TRY(require_tenant_leases(decision.state, leases));
  TRY(set_draining(decision, drain.tenant, drain.worker, true));
  const TimePoint until = decision.now + std::chrono::milliseconds(drain.grace_ms);
  for (const LeaseId id : leases) {
    LeaseRecord& record = decision.state.leases.at(id);
    start_drain(decision, record, {.until = until}, refusal_of(drain, id));
    notify_draining(decision, record);
  }
  record_operator_action(decision,
                         {.uid = caller.uid,
                          .action = "drain",
                          .object = drain.worker ? worker_object(*drain.worker)
                                                 : object_name(drain.lease, drain.tenant)});
  if (drain.grace_ms == 0) revoke_leases(decision, leases, RevokeReason::DrainDeadline);
  decision.add(effect::ReplyWhenJournaled{
      caller.call, Answer{wire::LeasesTouched{.leases = std::move(leases)}}});
  return std::nullopt;
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::LeaseUndrain& undrain) {
  TRY(set_draining(decision, undrain.tenant, undrain.worker, false));
  record_operator_action(decision,
                         {.uid = caller.uid,
                          .action = "undrain",
                          .object = undrain.worker ? worker_object(*undrain.worker)
                                                   : object_name(std::nullopt, undrain.tenant)});
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

void decide_event(Decision& decision, const DrainReported& reported) {
  Worker* worker = decision.state.workers.find_by_connection(reported.connection);
  if (worker != nullptr) worker->stopping = true;
}

/// A false report can only end a lease of the reporting worker. The fence still waits for its
/// proof.
CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::LeaseDrained& drained) {
  State& state = decision.state;
  const LeaseRecord& record = *TRY(state.leases.find(drained.lease));
  const Worker* worker = state.workers.find_by_connection(caller.connection);
  const std::string lease = to_string(drained.lease);
  if (worker == nullptr || record.worker() != worker->id) {
    return fail(Errc::PermissionDenied,
                fmt::format("lease {} was not granted to this worker", lease));
  }
  if (!record.is(LeaseState::Live)) return Answer{};
  if (record.drain_deadline == TimePoint{}) {
    return fail(Errc::IllegalTransition,
                fmt::format("lease {} is not draining; it goes on", lease));
  }
  const bool is_reclaimed = record.drain_reason == RevokeReason::PreemptedByPriority;
  revoke_leases(decision, std::vector{drained.lease},
                is_reclaimed ? record.drain_reason : RevokeReason::Released);
  return Answer{};
}

}  // namespace leasehold
