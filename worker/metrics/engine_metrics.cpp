#include "worker/metrics/engine_metrics.hpp"

namespace leasehold {

void EngineMetrics::add_served(const std::vector<wire::TenantServed>& served) {
  const TimePoint now = clock_->now();
  for (const wire::TenantServed& each : served) tenants_.add(each, now);
}

void EngineMetrics::publish(const Scheduler& scheduler, std::optional<bool> is_drafting,
                            bool is_asleep, std::optional<AdapterCounts> adapters) {
  EngineSnapshot snapshot{.running = scheduler.running().size(),
                          .waiting = scheduler.tenancies().waiting_count(),
                          .prefixes = scheduler.tenancies().prefix_counters(),
                          .proposals = scheduler.proposals().counters(),
                          .is_drafting = is_drafting,
                          .is_asleep = is_asleep,
                          .adapters = adapters,
                          .tenants = tenants_.counts()};
  for (const auto& [lease, tenancy] : scheduler.tenancies()) {
    const std::uint64_t cached = tenancy.prefixes.unused();
    snapshot.held_blocks += tenancy.pool.held_blocks() - cached;
    snapshot.cached_blocks += cached;
    snapshot.free_blocks += tenancy.pool.free_blocks();
    snapshot.swapped_blocks += tenancy.swap.held_blocks();
  }
  running_ = snapshot.running;
  waiting_ = snapshot.waiting;
  latest_.publish(std::move(snapshot));
}

}  // namespace leasehold
