// The part of Scheduler that counts what tenants were served.
#include <utility>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {

void Scheduler::note_served(Tenancy& tenancy) {
  const PrefixCounters& now = tenancy.prefixes.counters();
  const PrefixCounters then = std::exchange(tenancy.reported, now);
  if (tenancy.is_shared) return;  // an operator published it
  wire::TenantServed& served = served_[tenancy.tenant];
  served.tokens += std::exchange(tenancy.served_tokens, 0);
  served.hit_blocks += now.hits - then.hits;
  served.hit_tokens += (now.hits - then.hits) * limits_.tokens_per_block;
  served.evicted_blocks += now.evictions - then.evictions;
  served.shared_hit_blocks += now.shared_hits - then.shared_hits;
  served.cross_tenant_hits += now.cross_tenant_hits - then.cross_tenant_hits;
}

std::vector<wire::TenantServed> Scheduler::take_served() {
  for (auto& [lease, tenancy] : tenancies_) {
    note_served(tenancy);
    if (tenancy.is_shared) continue;
    served_.at(tenancy.tenant).cached_blocks += tenancy.prefixes.unused();
  }
  std::vector<wire::TenantServed> changed;
  for (auto& [tenant, served] : std::exchange(served_, {})) {
    const bool has_counts = served.tokens > 0 || served.hit_blocks > 0 ||
                            served.evicted_blocks > 0 || served.preemptions > 0 ||
                            served.shared_hit_blocks > 0 || served.cross_tenant_hits > 0;
    std::uint32_t& cached = cached_blocks_[tenant];
    const std::uint32_t reported = std::exchange(cached, served.cached_blocks);
    if (cached == 0) cached_blocks_.erase(tenant);
    if (!has_counts && served.cached_blocks == reported) continue;
    served.tenant = tenant;
    changed.push_back(std::move(served));
  }
  return changed;
}

}  // namespace leasehold
