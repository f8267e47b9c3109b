#include "worker/schedule/tenants/service_report.hpp"

#include <utility>

namespace leasehold {
namespace {

bool has_counts(const wire::TenantServed& served) {
  return served.tokens > 0 || served.hit_blocks > 0 || served.evicted_blocks > 0 ||
         served.preemptions > 0 || served.shared_hit_blocks > 0 || served.cross_tenant_hits > 0;
}

}  // namespace

void ServiceReport::note_preemption(const Tenancy& tenancy) {
  if (!tenancy.is_shared) ++served_[tenancy.tenant].preemptions;
}

void ServiceReport::note_end(Tenancy& tenancy) {
  note_served(tenancy);
  ended_prefixes_ += tenancy.prefixes.counters();
}

void ServiceReport::note_served(Tenancy& tenancy) {
  const PrefixCounters& now = tenancy.prefixes.counters();
  const PrefixCounters then = std::exchange(tenancy.reported, now);
  if (tenancy.is_shared) return;
  wire::TenantServed& served = served_[tenancy.tenant];
  served.tokens += std::exchange(tenancy.served_tokens, 0);
  served.hit_blocks += now.hits - then.hits;
  served.hit_tokens += (now.hits - then.hits) * tokens_per_block_;
  served.evicted_blocks += now.evictions - then.evictions;
  served.shared_hit_blocks += now.shared_hits - then.shared_hits;
  served.cross_tenant_hits += now.cross_tenant_hits - then.cross_tenant_hits;
}

std::vector<wire::TenantServed> ServiceReport::take(std::map<LeaseId, Tenancy>& leases) {
  for (auto& [lease, tenancy] : leases) {
    note_served(tenancy);
    if (tenancy.is_shared) continue;
    served_.at(tenancy.tenant).cached_blocks += tenancy.prefixes.unused();
  }
  std::vector<wire::TenantServed> changed;
  for (auto& [tenant, served] : std::exchange(served_, {})) {
    std::uint32_t& cached = cached_blocks_[tenant];
    const std::uint32_t reported = std::exchange(cached, served.cached_blocks);
    if (cached == 0) cached_blocks_.erase(tenant);
    if (!has_counts(served) && served.cached_blocks == reported) continue;
    served.tenant = tenant;
    changed.push_back(std::move(served));
  }
  return changed;
}

PrefixCounters ServiceReport::prefix_counters(const std::map<LeaseId, Tenancy>& leases) const {
  PrefixCounters all = ended_prefixes_;
  for (const auto& [lease, tenancy] : leases) all += tenancy.prefixes.counters();
  return all;
}

}  // namespace leasehold
