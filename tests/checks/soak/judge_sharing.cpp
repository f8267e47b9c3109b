#include <fmt/format.h>

#include <set>

#include "tests/checks/soak/judge_checks.hpp"

namespace leasehold::soak {
namespace {

/// Describes a wrong report that a published text ended; empty when it is right.
std::string text_end_error(const Case& all, const demo::TenantEvent& reported) {
  const LeaseId lease = reported.lease.value_or(LeaseId{});
  const auto instance = instance_of(all.instances, lease, "", reported.at);
  if (!instance) return fmt::format("lease {} held no published text", to_string(lease));
  const LeaseTrace& trace = all.instances[*instance].leases.at(lease);
  const bool was_revoked = trace.revoked && *trace.revoked <= reported.at;
  // A broker that died meanwhile may not have logged the revocation.
  const BrokerInstance& broker = all.history.brokers[*instance];
  if (was_revoked || broker.restarted_between(*trace.granted, reported.at)) return {};
  return fmt::format("lease {} was not revoked", to_string(lease));
}

/// Another check covers that the readers' texts continue. Events do not name the readers of a text,
/// so this check does not find a reader that reported nothing.
demo::Check notified_of_text_ends(const Case& all) {
  Finding finding("no reader was notified twice that a text ended, or of a text that lives",
                  "ends of texts reported");
  for (const TenantInstance& tenant : all.history.tenants) {
    std::set<std::optional<LeaseId>> seen;
    for (const demo::TenantEvent& reported : tenant.record.reported) {
      if (!is_text_end(reported)) continue;
      finding.checked();
      std::string wrong = text_end_error(all, reported);
      if (!seen.insert(reported.lease).second) wrong = "and before that already";
      if (!wrong.empty()) finding.wrong(fmt::format("{}: {}", tenant.tenant, wrong));
    }
  }
  return finding.check();
}

demo::Check used_published(const UsedBlocks& used) {
  return {.promise = "tenants used blocks of the published text, and none that others cached",
          .ok = used.published > 0 && used.cross_tenant == 0,
          .seen = fmt::format("{} blocks of the text, {} of other tenants", used.published,
                              used.cross_tenant)};
}

demo::Check reclaimed_from_scavenger(const Case& all) {
  Finding finding("memory was reclaimed, and from the scavenger only", "leases");
  for (const BrokerInstance& broker : all.history.brokers) {
    for (const events::StampedEvent& stamped : broker.events) {
      const auto* event = std::get_if<events::LeaseStateChanged>(&stamped.event);
      if (event == nullptr || !is_reclaim(*event)) continue;
      finding.checked();
      if (event->tenant != all.history.tiers->scavenger)
        finding.wrong(fmt::format("lease {} of {}", to_string(event->lease), event->tenant));
    }
  }
  return finding.check();
}

demo::Check guaranteed_got_memory(const Case& all) {
  Finding finding("the guaranteed tenant never gave up for want of memory", "processes");
  for (const TenantInstance& tenant : all.history.tenants) {
    if (tenant.tenant != all.history.tiers->guaranteed) continue;
    finding.checked();
    if (tenant.record.failed && tenant.record.reported.back().why == name(Errc::PoolExhausted))
      finding.wrong(*tenant.record.failed);
  }
  return finding.check();
}

}  // namespace

void judge_sharing(const Case& all, std::vector<demo::Check>& checks) {
  if (all.history.used_blocks) {
    checks.push_back(notified_of_text_ends(all));
    checks.push_back(used_published(*all.history.used_blocks));
  }
  if (all.history.tiers) {
    checks.push_back(reclaimed_from_scavenger(all));
    checks.push_back(guaranteed_got_memory(all));
  }
}

}  // namespace leasehold::soak
