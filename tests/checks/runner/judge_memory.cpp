#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tests/checks/runner/judge_case.hpp"

namespace leasehold::runner {
namespace {

/// An extent id is never reused, so it has one tenant and one sequence of states.
struct ExtentTrace {
  std::string state = "Free";
  std::string lease;
  TimePoint at;
};

bool may_follow(std::string_view before, std::string_view after) {
  if (after == "Owned") return before == "Free" || before == "Retained";
  if (after == "Draining") return before == "Owned";
  if (after == "Retained") return before == "Draining";
  if (after == "Scrubbing")
    return before == "Owned" || before == "Draining" || before == "Retained";
  return after == "Free" && before == "Scrubbing";
}

using TenantsOfLeases = std::map<std::string, std::string>;

TenantsOfLeases tenants_of_leases(const BrokerInstance& broker) {
  TenantsOfLeases tenants;
  for_each_event<events::LeaseStateChanged>(broker.events, [&](const auto& event, TimePoint) {
    tenants[to_string(event.lease)] = event.tenant;
  });
  return tenants;
}

/// Describes a wrong transition; empty if it is right. After the death of a broker, events may be
/// missing.
std::string transition(ExtentTrace& trace, const events::RegionStateChanged& event,
                       bool after_death, const TenantsOfLeases& tenants) {
  const std::string before = std::exchange(trace.state, event.state);
  const bool fits = after_death ? event.state != "Quarantined" : may_follow(before, event.state);
  if (!fits) return fmt::format("went {} → {}", before, event.state);
  if (event.state == "Free") return {};
  if (trace.lease.empty()) trace.lease = event.lease;
  if (event.lease == trace.lease) return {};
  const std::string from = std::exchange(trace.lease, event.lease);
  const auto old_tenant = tenants.find(from), tenant = tenants.find(event.lease);
  const bool is_adopted = before == "Retained" && event.state == "Owned" &&
                          old_tenant != tenants.end() && tenant != tenants.end() &&
                          old_tenant->second == tenant->second;
  if (is_adopted) return {};
  return fmt::format("of lease {} was handed to {}", from, event.lease);
}

void judge_extents(const BrokerInstance& broker, Finding& finding) {
  const TenantsOfLeases tenants = tenants_of_leases(broker);
  std::map<std::uint64_t, ExtentTrace> traces;
  for_each_event<events::RegionStateChanged>(broker.events, [&](const auto& event, TimePoint at) {
    if (event.kind != "extent") return;
    ExtentTrace& trace = traces[event.region];
    const bool after_death = broker.restarted_between(trace.at, at);
    const std::string wrong = transition(trace, event, after_death, tenants);
    trace.at = at;
    if (!wrong.empty()) finding.wrong(fmt::format("extent {} {}", event.region, wrong));
  });
  finding.checked(traces.size());
}

Check one_owner_each(const Case& all) {
  Finding finding("no extent had two owners, or was free before it was scrubbed", "extents");
  for (const BrokerInstance& broker : all.record.brokers) judge_extents(broker, finding);
  return finding.check();
}

Check no_foreign_canary(const Case& all) {
  const CanaryReport& report = *all.record.canaries;
  Finding finding("no canary is in the memory or stream of another tenant", "extents read");
  finding.checked(report.extents_read);
  for (const std::string& foreign : report.foreign) finding.wrong(foreign);
  Check check = finding.check();
  check.ok = check.ok && report.own_found > 0;
  check.seen += fmt::format(", the owner's canary found {} times", report.own_found);
  return check;
}

}  // namespace

void judge_memory(const Case& all, std::vector<Check>& checks) {
  checks.push_back(one_owner_each(all));
  checks.push_back(conserved(all.record));
  checks.push_back(all_free(all.record));
  if (all.record.canaries) checks.push_back(no_foreign_canary(all));
}

}  // namespace leasehold::runner
