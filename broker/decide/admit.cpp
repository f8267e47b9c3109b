// `brokerctl tenants admit`: creates or changes a tenant's policy.
#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/record.hpp"

namespace leasehold {

namespace {

/// Requests that run may grow within the quota that admitted them.
void keep_earlier_quota(State& state, const TenantId& tenant) {
  const std::uint32_t quota = state.tenants.find(tenant)->policy.max_blocks;
  for (const LeaseId id : state.leases.open_leases()) {
    LeaseRecord& record = state.leases.at(id);
    if (record.tenant != tenant) continue;
    record.earlier_max_blocks = std::max(record.earlier_max_blocks, quota);
  }
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::TenantAdmit& admit) {
  if (decision.state.tenants.find(admit.tenant)) keep_earlier_quota(decision.state, admit.tenant);
  TRY(decision.state.tenants.admit(admit, decision.now));
  decision.touched.tenants.push_back(admit.tenant);
  decision.touched.durable = true;
  record_operator_action(
      decision, {.uid = caller.uid, .action = "admit", .object = "tenant:" + admit.tenant.value});
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

/// A success must survive a broker restart. Rows that could not be written take effect all the same
/// and are written with the next transaction.
void decide_event(Decision& decision, const JournalWritten& written) {
  if (!written.refused) return decision.reply(written.call, written.answer);
  decision.reply(
      written.call,
      fail(written.refused->code,
           "it took effect but is not on disk, so a broker restart would undo it; make room in the "
           "state directory and repeat the call (" +
               written.refused->detail + ")"));
}

}  // namespace leasehold
