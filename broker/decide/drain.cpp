// `brokerctl drain`: leases accept no growth and are revoked when the grace ends.
#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/named_leases.hpp"
#include "broker/decide/record.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

void start_drain(Decision& decision, LeaseRecord& record, TimePoint until) {
  if (!record.is(LeaseState::Live)) return;
  record.drain_deadline = until;
  decision.touch(record.id());
  decision.record(events::LeaseDraining{.lease = record.id(),
                                        .tenant = record.tenant.value,
                                        .deadline_boottime_ns = until.boottime_ns});
  decision.add(effect::SetDrainDeadline{record.id(), until});
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseDrain& drain) {
  if (drain.grace_ms < 0 || drain.grace_ms > 86'400'000) {
    return fail(Errc::BadRequest,
                fmt::format("grace_ms is {}; it must be 0 to 86400000", drain.grace_ms));
  }
  std::vector<LeaseId> leases = TRY(leases_named(decision.state, drain.lease, drain.tenant));
  const TimePoint until = decision.now + std::chrono::milliseconds(drain.grace_ms);
  for (const LeaseId id : leases) start_drain(decision, decision.state.leases.at(id), until);
  record_operator_action(
      decision,
      {.uid = caller.uid, .action = "drain", .object = object_name(drain.lease, drain.tenant)});
  if (drain.grace_ms == 0) revoke_leases(decision, leases, RevokeReason::DrainDeadline);
  return Answer{wire::LeasesTouched{.leases = std::move(leases)}};
}

}  // namespace leasehold
