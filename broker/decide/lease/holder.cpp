#include "broker/decide/lease/holder.hpp"

#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/tenant/cell.hpp"

namespace leasehold {

std::unexpected<Error> lease_not_held_error(LeaseId lease) {
  return fail(Errc::UnknownLease,
              fmt::format("this connection holds no lease {}; acquire one", to_string(lease)));
}

Result<LeaseRecord*> find_held(State& state, const Caller& caller, LeaseId lease) {
  const auto found = state.leases.find(lease);
  const bool is_held =
      found && (*found)->scope == wire::LeaseScope::Tenant && (*found)->holder == caller.connection;
  if (!is_held) return lease_not_held_error(lease);
  return *found;
}

namespace {

void revoke_held_by(Decision& decision, ConnectionId connection) {
  const auto held = open_leases_where(decision.state, [&](const LeaseRecord& record) {
    return record.scope == wire::LeaseScope::Tenant && record.holder == connection;
  });
  revoke_leases(decision, held, RevokeReason::HolderGone);
  for (const LeaseId id : held) {
    LeaseRecord& record = decision.state.leases.at(id);
    // without a holder, the fence retains no memory
    if (record.is(LeaseState::Revoked)) record.holder = {};
  }
  end_retention(decision, retained_where(decision.state, [&](const LeaseRecord& record) {
                  return record.holder == connection;
                }));
}

/// Finds the lease whose token the caller shows. Errors: BadToken, with the same text for a token
/// of another lease and for an unknown lease.
Result<LeaseRecord*> find_claimed(State& state, const wire::LeaseHold& hold) {
  const auto found = state.leases.find(hold.lease);
  const Worker* worker = found ? state.workers.find((*found)->worker()) : nullptr;
  if (worker != nullptr && (*found)->scope == wire::LeaseScope::Tenant) {
    const auto claim = verify_token(worker->token_key, hold.token);
    if (claim && claim->lease == hold.lease && claim->tenant == (*found)->tenant) return *found;
  }
  return fail(Errc::BadToken, fmt::format("the token is not that of a lease {} that can be claimed",
                                          to_string(hold.lease)));
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseRenew& renew) {
  LeaseRecord& record = *TRY(find_held(decision.state, caller, renew.lease));
  TRY(require_live(record));
  if (const Tenant* tenant = decision.state.tenants.find(record.tenant))
    TRY(require_ceiling(decision, *tenant));
  set_deadline(decision, record, record.deadline_after(decision.now));
  return Answer{wire::LeaseRenewed{.deadline_boottime_ns = record.deadline.boottime_ns}};
}

/// The token proves that this lease was granted to the caller. The user id must match too, so a
/// stolen token is not enough.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseHold& hold) {
  LeaseRecord& record = *TRY(find_claimed(decision.state, hold));
  const bool held = record.holder != ConnectionId{} && record.holder != caller.connection;
  if (held || caller.uid != record.holder_uid) {
    return fail(Errc::PermissionDenied,
                fmt::format("lease {} is held by another {}", to_string(hold.lease),
                            held ? "connection" : "user"));
  }
  TRY(require_live(record));
  record.holder = caller.connection;
  record.holder_process = {caller.pid, caller.start_ticks};
  decision.touch(record.id());
  return Answer{wire::LeaseRenewed{.deadline_boottime_ns = record.deadline.boottime_ns}};
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::LeaseRelease& release) {
  LeaseRecord& record = *TRY(find_held(decision.state, caller, release.lease));
  if (record.is(LeaseState::Fenced)) {
    end_retention(decision, {record.id()});
    return std::unexpected(require_live(record).error());
  }
  revoke_leases(decision, std::vector{record.id()}, RevokeReason::Released, HolderNotice::None);
  return Answer{};
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseQuery& query) {
  const LeaseRecord& record =
      *TRY(caller.is_operator ? decision.state.leases.find(query.lease)
                              : find_held(decision.state, caller, query.lease));
  return Answer{
      wire::LeaseStatus{.lease = record.id(),
                        .scope = record.scope,
                        .state = record.state(),
                        .reason = reason_of(record.lease),
                        .deadline_boottime_ns = record.deadline.boottime_ns,
                        .drain_deadline_boottime_ns = record.drain_deadline.boottime_ns,
                        .blocks = record.is(LeaseState::Fenced) ? 0 : record.charged_blocks}};
}

void decide_event(Decision& decision, const ConnectionClosed& closed) {
  Worker* worker = decision.state.workers.find_by_connection(closed.connection);
  if (worker != nullptr) mark_worker_lost(decision, *worker);
  revoke_held_by(decision, closed.connection);
  end_step_watch(decision, closed.connection);
  forget_agent(decision.state, closed.connection);
}

void decide_event(Decision& decision, const HolderExited& exited) {
  revoke_held_by(decision, exited.connection);
}

/// Revokes only leases that no connection has claimed: after a claim, the connection watches the
/// holder.
void decide_event(Decision& decision, const PreviousHolderExited& exited) {
  const auto held = open_leases_where(decision.state, [&](const LeaseRecord& record) {
    return record.scope == wire::LeaseScope::Tenant && record.holder == ConnectionId{} &&
           record.holder_process == exited.process;
  });
  revoke_leases(decision, held, RevokeReason::HolderGone);
}

}  // namespace leasehold
