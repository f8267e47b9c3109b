/// Counts the service that tenants received, for reports to the broker: tokens, cached blocks that
/// were used or evicted, and preemptions.
///
/// Under a shared lease no tenant is served, because an operator published the text.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ipc/control/messages/worker.hpp"
#include "worker/schedule/scheduler_types.hpp"

namespace leasehold {

class ServiceReport {
 public:
  explicit ServiceReport(std::uint32_t tokens_per_block) : tokens_per_block_(tokens_per_block) {}

  void note_preemption(const Tenancy& tenancy);
  /// Keeps what was served under a lease that ends. Call it once, before the lease is removed.
  void note_end(Tenancy& tenancy);
  /// Reports the tenant's cached blocks again, even if their number stays the same: a restarted
  /// broker has lost it.
  void repeat_cached_blocks(const TenantId& tenant) { cached_blocks_.erase(tenant); }

  /// The service since the last call; omits tenants without changes.
  std::vector<wire::TenantServed> take(std::map<LeaseId, Tenancy>& leases);
  /// Sums over these leases and those that ended.
  PrefixCounters prefix_counters(const std::map<LeaseId, Tenancy>& leases) const;

 private:
  void note_served(Tenancy& tenancy);

  std::uint32_t tokens_per_block_;
  std::map<TenantId, wire::TenantServed> served_;    // noted since the last `take`
  std::map<TenantId, std::uint32_t> cached_blocks_;  // at the last `take`; without an entry: 0
  PrefixCounters ended_prefixes_;                    // of leases that ended
};

}  // namespace leasehold
