// Workers report finished requests, which become records of the audit chain.
#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"

namespace leasehold {
namespace {

/// The lease, which belonged to this tenant on this worker. Null if the slot has a newer lease: the
/// broker then cannot know. Errors: PermissionDenied for the lease of another worker or tenant.
Result<const LeaseRecord*> find_lease(State& state, const Worker& worker,
                                      const wire::UsageRecord& usage) {
  const auto found = state.leases.find(usage.lease);
  if (!found && found.error().code == Errc::StaleGeneration) return nullptr;
  const bool is_here = found && (*found)->worker() == worker.id && (*found)->tenant == usage.tenant;
  if (is_here) return *found;
  return fail(Errc::PermissionDenied,
              fmt::format("usage record {} names lease {} of tenant {}, which worker {} never had",
                          usage.number, to_string(usage.lease), usage.tenant.value, worker.name));
}

/// Counts the record's tokens for the day of its tenant and of its key. A cached prompt token costs
/// nothing. Skips what the worker reported before; a restarted broker does not know that, and
/// counts a report twice that its predecessor journaled but did not answer.
void count(Decision& decision, Worker& worker, const journal::UsageRow& row) {
  State& state = decision.state;
  const wire::UsageRecord& usage = row.usage;
  if (usage.number <= worker.usage_counted) return;
  worker.usage_counted = usage.number;
  Tenant* tenant = state.tenants.find(usage.tenant);
  if (tenant == nullptr) return;
  const std::uint64_t computed =
      usage.prompt_tokens - std::min(usage.prompt_tokens, usage.cached_tokens);
  const std::uint64_t tokens = computed + usage.generated_tokens;
  tenant->use.add(tokens, state.wall.day(decision.now));
  decision.touched.counted.push_back(usage.tenant);
  decision.touched.usage.push_back(usage.tenant);
  if (state.api_keys.find(row.api_key) == nullptr) return;
  state.api_keys.count(row.api_key, tokens, state.wall, decision.now);
  decision.touched.api_keys.push_back(row.api_key);
}

}  // namespace

/// Only the journal knows which records it has, so it drops records with known numbers.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::UsageReport& report) {
  State& state = decision.state;
  Worker* worker = state.workers.find_by_connection(caller.connection);
  if (worker == nullptr) return fail(Errc::PermissionDenied, "call worker.attach first");
  std::vector<journal::UsageRow> rows;
  for (const wire::UsageRecord& usage : report.records) {
    const LeaseRecord* lease = TRY(find_lease(state, *worker, usage));
    rows.push_back({.worker = worker->id,
                    .worker_name = worker->name,
                    .usage = usage,
                    .lease_known = lease != nullptr,
                    .api_key = lease == nullptr ? ApiKeyId{} : lease->api_key});
  }
  for (const journal::UsageRow& row : rows) count(decision, *worker, row);
  decision.touched.usage_records = std::move(rows);
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

}  // namespace leasehold
