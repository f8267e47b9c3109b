// `brokerctl revoke`: revokes a lease, a tenant's leases, the engine leases on a weights part, or
// the leases of an adapter.
#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/tenant/adapters.hpp"

namespace leasehold {
namespace {

/// "blk.1" names "blk.1" and "blk.1.ffn_up", but not "blk.10".
bool names_part(std::string_view wanted, std::string_view part) {
  return part == wanted ||
         (part.starts_with(wanted) && part.substr(wanted.size()).starts_with('.'));
}

/// Fails if no live lease matches, because the name is mistyped or the weights are divided
/// differently.
Result<std::vector<LeaseId>> leases_on_part(State& state, const wire::LeaseRevoke& revoke) {
  std::vector<LeaseId> leases = open_leases_where(state, [&](const LeaseRecord& record) {
    return record.scope == wire::LeaseScope::Engine && record.is(LeaseState::Live) &&
           names_part(*revoke.part, record.part) &&
           (!revoke.worker || state.workers.find(record.worker())->name == *revoke.worker);
  });
  if (!leases.empty()) return leases;
  return fail(Errc::UnknownLease,
              fmt::format("no live engine lease covers part '{}'{}; see `brokerctl leases`",
                          *revoke.part, revoke.worker ? " on worker " + *revoke.worker : ""));
}

std::string revoked_object(const wire::LeaseRevoke& revoke) {
  if (revoke.adapter) return "adapter:" + revoke.adapter->value;
  if (!revoke.part) return object_name(revoke.lease, revoke.tenant);
  return "part:" + *revoke.part + (revoke.worker ? "@" + *revoke.worker : "");
}

/// Includes a fenced lease whose memory is retained.
Result<std::vector<LeaseId>> leases_to_end(State& state, const wire::LeaseRevoke& revoke) {
  if (revoke.part) return leases_on_part(state, revoke);
  if (revoke.adapter) return leases_of_adapter(state, *revoke.adapter, revoke.tenant);
  const bool is_retained =
      revoke.lease && !revoke.tenant && !retained_where(state, [&](const auto& record) {
                                           return record.id() == *revoke.lease;
                                         }).empty();
  if (is_retained) return std::vector{*revoke.lease};
  return leases_named(state, revoke.lease, revoke.tenant);
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseRevoke& revoke) {
  std::vector<LeaseId> leases = TRY(leases_to_end(decision.state, revoke));
  revoke_leases(decision, leases, RevokeReason::Operator);
  end_retention(decision, leases);
  if (revoke.tenant && !revoke.adapter) end_retention_of(decision, *revoke.tenant);
  record_operator_action(decision,
                         {.uid = caller.uid, .action = "revoke", .object = revoked_object(revoke)});
  return Answer{wire::LeasesTouched{.leases = std::move(leases)}};
}

}  // namespace leasehold
