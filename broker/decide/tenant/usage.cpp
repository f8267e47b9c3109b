// Workers report finished requests, which become records of the audit chain.
#include <fmt/format.h>

#include "broker/decide/deciders.hpp"

namespace leasehold {
namespace {

/// True if the lease belonged to this tenant on this worker. False if the slot has a newer lease:
/// the broker then cannot know. Errors: PermissionDenied for the lease of another worker or tenant.
Result<bool> check_lease(State& state, const Worker& worker, const wire::UsageRecord& usage) {
  const auto found = state.leases.find(usage.lease);
  if (!found && found.error().code == Errc::StaleGeneration) return false;
  const bool is_here = found && (*found)->worker() == worker.id && (*found)->tenant == usage.tenant;
  if (is_here) return true;
  return fail(Errc::PermissionDenied,
              fmt::format("usage record {} names lease {} of tenant {}, which worker {} never had",
                          usage.number, to_string(usage.lease), usage.tenant.value, worker.name));
}

}  // namespace

/// Only the journal knows which records it has, so it drops records with known numbers.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::UsageReport& report) {
  State& state = decision.state;
  const Worker* worker = state.workers.find_by_connection(caller.connection);
  if (worker == nullptr) return fail(Errc::PermissionDenied, "call worker.attach first");
  std::vector<journal::UsageRow> rows;
  for (const wire::UsageRecord& usage : report.records) {
    const bool known = TRY(check_lease(state, *worker, usage));
    rows.push_back(
        {.worker = worker->id, .worker_name = worker->name, .usage = usage, .lease_known = known});
  }
  decision.touched.usage_records = std::move(rows);
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

}  // namespace leasehold
