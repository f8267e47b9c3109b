#include <fmt/format.h>

#include <set>

#include "tests/checks/runner/judge_case.hpp"

namespace leasehold::runner {
namespace {

/// Describes a wrong report that a published text, or an adapter of this tenant, ended; empty when
/// it is right.
std::string dependency_end_error(const Case& all, const std::string& tenant,
                                 const TenantEvent& reported) {
  const LeaseId lease = reported.lease.value_or(LeaseId{});
  const bool is_adapter = is_end_of(FailureScope::Adapter, reported);
  const auto instance = all.instance_of(lease, is_adapter ? tenant : "", reported.at);
  if (!instance)
    return fmt::format("lease {} held no published text or adapter of its", to_string(lease));
  const LeaseTrace& trace = all.instances[*instance].leases.at(lease);
  const bool was_revoked = trace.revoked && *trace.revoked <= reported.at;
  // A broker that died meanwhile may not have logged the revocation.
  const BrokerInstance& broker = all.record.brokers[*instance];
  if (was_revoked || broker.restarted_between(*trace.granted, reported.at)) return {};
  return fmt::format("lease {} was not revoked", to_string(lease));
}

/// Another check covers that the readers' texts continue. Events do not name the readers of a text
/// or adapter, so this check does not find a reader that reported nothing.
Check notified_of_dependency_ends(const Case& all) {
  Finding finding("no reader was notified twice that a text or adapter ended, or of one that lives",
                  "ends of texts and adapters reported");
  for (const Text& tenant : all.record.texts) {
    std::set<std::optional<LeaseId>> seen;
    for (const TenantEvent& reported : tenant.record.reported) {
      if (reported.event != "revoked" || !is_dependency(reported.scope)) continue;
      finding.checked();
      std::string wrong = dependency_end_error(all, tenant.tenant, reported);
      if (!seen.insert(reported.lease).second) wrong = "and before that already";
      if (!wrong.empty()) finding.wrong(fmt::format("{}: {}", tenant.tenant, wrong));
    }
  }
  return finding.check();
}

Check used_published(const UsedBlocks& used) {
  return {.promise = "tenants used blocks of the published text, and none that others cached",
          .ok = used.published > 0 && used.cross_tenant == 0,
          .seen = fmt::format("{} blocks of the text, {} of other tenants", used.published,
                              used.cross_tenant)};
}

Check reclaimed_from_scavenger(const Case& all) {
  Finding finding("memory was reclaimed, and from the scavenger only", "leases");
  for (const BrokerInstance& broker : all.record.brokers) {
    for_each_event<events::LeaseStateChanged>(broker.events, [&](const auto& event, TimePoint) {
      if (!is_reclaim(event)) return;
      const bool is_right = event.tenant == all.record.tiers->scavenger;
      finding.sample(
          is_right ? "" : fmt::format("lease {} of {}", to_string(event.lease), event.tenant));
    });
  }
  return finding.check();
}

Check guaranteed_got_memory(const Case& all) {
  Finding finding("the guaranteed tenant never gave up for want of memory", "processes");
  for (const Text& tenant : all.record.texts) {
    if (tenant.tenant != all.record.tiers->guaranteed) continue;
    finding.checked();
    if (tenant.record.failed && tenant.record.reported.back().why == name(Errc::PoolExhausted))
      finding.wrong(*tenant.record.failed);
  }
  return finding.check();
}

}  // namespace

void judge_sharing(const Case& all, std::vector<Check>& checks) {
  if (all.record.used_blocks || all.record.has_adapters)
    checks.push_back(notified_of_dependency_ends(all));
  if (all.record.used_blocks) checks.push_back(used_published(*all.record.used_blocks));
  if (all.record.tiers) {
    checks.push_back(reclaimed_from_scavenger(all));
    checks.push_back(guaranteed_got_memory(all));
  }
}

}  // namespace leasehold::runner
