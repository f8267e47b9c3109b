// `brokerctl tenants admit` creates a tenant or changes its policy; `tenants remove` forgets it.
#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/tenant/adapters.hpp"
#include "broker/decide/tenant/admit.hpp"
#include "broker/decide/tenant/cell.hpp"
#include "broker/decide/tenant/keys.hpp"
#include "broker/decide/tenant/quota.hpp"

namespace leasehold {

namespace {

/// Lets running requests grow within the quota that admitted them. Not for a tenant of a cell:
/// another host may have the blocks by then.
void keep_earlier_quota(State& state, const TenantId& tenant, std::uint32_t quota) {
  for (const LeaseId id : state.leases.open_leases()) {
    LeaseRecord& record = state.leases.at(id);
    if (record.tenant != tenant) continue;
    record.earlier_max_blocks = std::max(record.earlier_max_blocks, quota);
  }
}

struct Removal {
  TenantId tenant;  // already removed from the state
  std::vector<LeaseId> revoked;
};

void write_removal(Decision& decision, const Caller& caller, Removal removal) {
  decision.touched.tenants.push_back(removal.tenant);
  decision.touched.durable = true;
  record_operator_action(
      decision,
      {.uid = caller.uid, .action = "remove", .object = "tenant:" + removal.tenant.value});
  decision.add(effect::ReplyWhenJournaled{
      caller.call, Answer{wire::LeasesTouched{.leases = std::move(removal.revoked)}}});
}

}  // namespace

Result<Tenant*> put_policy(Decision& decision, const wire::TenantPolicy& policy) {
  Tenants& tenants = decision.state.tenants;
  const Tenant* known = tenants.find(policy.tenant);
  const bool is_new = known == nullptr;
  const std::uint32_t earlier = is_new ? 0 : known->policy.max_blocks;
  TRY(check_policy(policy));
  TRY(require_coverable(decision.state, policy));
  const std::uint64_t reserved_bytes = reserve_for(decision.state, policy);
  TRY(tenants.admit(policy, decision.now));
  Tenant& tenant = *tenants.find(policy.tenant);
  tenant.reserved_bytes = reserved_bytes;
  if (is_new) tenant.admitted_unix_ms = decision.state.wall.unix_ms(decision.now);
  if (!policy.cell) keep_earlier_quota(decision.state, policy.tenant, earlier);
  decision.touched.tenants.push_back(policy.tenant);
  return &tenant;
}

/// Not even the agent changes a tenant of a cell in this way: its limits have a revision.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::TenantAdmit& admit) {
  const Tenant* known = decision.state.tenants.find(admit.tenant);
  if (known != nullptr) TRY(require_local(*known));
  const wire::TenantPolicy policy = with_changes(known, admit);
  (void)TRY(put_policy(decision, policy));
  decision.touched.durable = true;
  record_operator_action(
      decision, {.uid = caller.uid, .action = "admit", .object = "tenant:" + admit.tenant.value});
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{policy}});
  return std::nullopt;
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::TenantRemove& remove) {
  Tenants& tenants = decision.state.tenants;
  const bool repeats =
      tenants.find(remove.tenant) == nullptr && tenants.is_removal_unwritten(remove.tenant);
  if (repeats) {
    write_removal(decision, caller, {remove.tenant, {}});
    return std::nullopt;
  }
  std::vector<LeaseId> leases = TRY(leases_named(decision.state, std::nullopt, remove.tenant));
  TRY(require_remover(decision.state, caller, *tenants.find(remove.tenant)));
  if (!leases.empty() && !remove.revoke) {
    return fail(Errc::IllegalTransition,
                fmt::format("tenant {} has {} live leases; wait for them to end, or repeat with "
                            "--revoke to revoke them",
                            remove.tenant.value, leases.size()));
  }
  revoke_leases(decision, leases, RevokeReason::PolicyChanged);
  end_retention_of(decision, remove.tenant);
  withdraw_quotas(decision, *tenants.find(remove.tenant));
  tenants.remove(remove.tenant);
  forget_keys_of(decision, remove.tenant);
  forget_adapters_of(decision, remove.tenant);
  write_removal(decision, caller, {remove.tenant, std::move(leases)});
  return std::nullopt;
}

/// A reported success must survive a broker restart. If the rows could not be written, the caller
/// gets the error, but the change takes effect and is written with the next transaction. Only the
/// creation of a key is undone.
void decide_event(Decision& decision, const JournalWritten& written) {
  const auto key = decision.state.api_keys.take_unwritten(written.call);
  if (!written.refused) {
    decision.state.tenants.removals_written();
    decision.state.api_keys.revocations_written();
    return decision.reply(written.call, written.answer);
  }
  if (key)
    return decision.reply(written.call, refuse_unwritten_key(decision, *key, *written.refused));
  decision.reply(written.call,
                 fail(written.refused->code,
                      "it took effect but is not on disk, so a broker restart would undo it: " +
                          written.refused->detail + ", then repeat the call"));
}

}  // namespace leasehold
