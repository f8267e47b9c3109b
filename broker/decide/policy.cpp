#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

/// Which leases an operator's call is about. Naming one lease that is fenced or gone is an error;
/// a tenant without leases is not.
Result<std::vector<LeaseId>> named_leases(State& state, const std::optional<LeaseId>& lease,
                                          const std::optional<TenantId>& tenant) {
  if (lease.has_value() == tenant.has_value()) {
    return fail(Errc::BadRequest, "name either a lease or a tenant, exactly one of them");
  }
  if (lease) {
    const LeaseRecord& record = *TRY(state.leases.find(*lease));
    if (record.is(LeaseState::Fenced)) return std::unexpected(require_live(record).error());
    return std::vector{*lease};
  }
  if (state.tenants.find(*tenant) == nullptr) {
    return fail(Errc::UnknownTenant, fmt::format("no tenant {}", tenant->value));
  }
  return open_leases_where(state, [&](const LeaseRecord& record) {
    return record.scope == wire::LeaseScope::Tenant && record.tenant == *tenant &&
           record.is(LeaseState::Live);
  });
}

bool covers(std::string_view wanted, std::string_view part) {
  return part == wanted ||
         (part.starts_with(wanted) && part.substr(wanted.size()).starts_with('.'));
}

/// Unlike with a tenant, none is an error: the name is likely mistyped, or cut in another scope.
Result<std::vector<LeaseId>> leases_on_part(State& state, const wire::LeaseRevoke& revoke) {
  std::vector<LeaseId> leases = open_leases_where(state, [&](const LeaseRecord& record) {
    return record.scope == wire::LeaseScope::Engine && record.is(LeaseState::Live) &&
           covers(*revoke.part, record.part) &&
           (!revoke.worker || state.workers.find(record.worker())->name == *revoke.worker);
  });
  if (!leases.empty()) return leases;
  return fail(Errc::UnknownLease,
              fmt::format("no live engine lease covers part '{}'{}", *revoke.part,
                          revoke.worker ? " on worker " + *revoke.worker : ""));
}

void start_drain(Decision& decision, LeaseRecord& record, TimePoint until) {
  if (!record.is(LeaseState::Live)) return;
  record.drain_deadline = until;
  decision.touch(record.id());
  decision.record(events::LeaseDraining{.lease = record.id(),
                                        .tenant = record.tenant.value,
                                        .deadline_boottime_ns = until.boottime_ns});
  decision.add(effect::SetDrainDeadline{record.id(), until});
}

void record_operator_action(Decision& decision, const Caller& caller, std::string action,
                            std::string object) {
  decision.record(
      events::OperatorAction{.action = action, .object = object, .uid = caller.uid, .done = true});
  decision.record_operator_action(
      {.uid = caller.uid, .action = std::move(action), .object = std::move(object)});
}

template <class Call>
std::string object_of(const Call& call) {
  if constexpr (requires { call.part; }) {
    if (call.part) return "part:" + *call.part + (call.worker ? "@" + *call.worker : "");
  }
  return call.lease ? "lease:" + to_string(*call.lease) : "tenant:" + call.tenant->value;
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::TenantAdmit& admit) {
  TRY(decision.state.tenants.admit(admit));
  decision.touched.tenants.push_back(admit.tenant);
  decision.touched.durable = true;
  record_operator_action(decision, caller, "admit", "tenant:" + admit.tenant.value);
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

/// An OK is remembered over the broker's end. What is not on disk holds all the same, and goes
/// there with whatever is written next.
void decide_event(Decision& decision, const JournalWritten& written) {
  if (!written.refused) return decision.reply(written.call, written.answer);
  decision.reply(
      written.call,
      fail(written.refused->code,
           "it holds, but could not be written down: a broker that ends now has forgotten it; make "
           "room in the state directory and repeat it (" +
               written.refused->detail + ")"));
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseRevoke& revoke) {
  std::vector<LeaseId> leases =
      revoke.part ? TRY(leases_on_part(decision.state, revoke))
                  : TRY(named_leases(decision.state, revoke.lease, revoke.tenant));
  revoke_leases(decision, leases, RevokeReason::Operator);
  record_operator_action(decision, caller, "revoke", object_of(revoke));
  return Answer{wire::LeasesTouched{.leases = std::move(leases)}};
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseDrain& drain) {
  if (drain.grace_ms < 0 || drain.grace_ms > 86'400'000) {
    return fail(Errc::BadRequest,
                fmt::format("grace_ms is {}; it must be 0 to 86400000", drain.grace_ms));
  }
  std::vector<LeaseId> leases = TRY(named_leases(decision.state, drain.lease, drain.tenant));
  const TimePoint until = decision.now + std::chrono::milliseconds(drain.grace_ms);
  for (const LeaseId id : leases) start_drain(decision, decision.state.leases.at(id), until);
  record_operator_action(decision, caller, "drain", object_of(drain));
  if (drain.grace_ms == 0) revoke_leases(decision, leases, RevokeReason::DrainDeadline);
  return Answer{wire::LeasesTouched{.leases = std::move(leases)}};
}

}  // namespace leasehold
