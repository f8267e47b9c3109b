/// The leases of a worker and their tenants: quotas, each tenant's use on this worker, active token
/// counters, and reports to the broker.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ipc/control/messages/worker.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/service_report.hpp"
#include "worker/schedule/tenants/token_counters.hpp"

namespace leasehold {

class Tenancies {
 public:
  explicit Tenancies(std::uint32_t tokens_per_block) : service_(tokens_per_block) {}

  // ---- leases, in the order of their ids

  /// Preconditions: the lease is not known yet, and has no blocks or requests.
  void add(Tenancy tenancy);
  /// Precondition: the lease is known. The service under the lease is kept for `take_served`, and
  /// its prefix counters for `prefix_counters`.
  void erase(LeaseId lease);
  bool contains(LeaseId lease) const { return leases_.contains(lease); }
  std::vector<LeaseId> ids() const;
  /// Precondition: the lease is known.
  Tenancy& at(LeaseId lease) { return leases_.at(lease); }
  const Tenancy& at(LeaseId lease) const { return leases_.at(lease); }
  auto find(LeaseId lease) { return leases_.find(lease); }
  auto find(LeaseId lease) const { return leases_.find(lease); }
  auto begin() { return leases_.begin(); }
  auto begin() const { return leases_.begin(); }
  auto end() { return leases_.end(); }
  auto end() const { return leases_.end(); }

  // ---- busy leases

  /// The leases that a tick examines, in the order of their ids: those with requests, a need for
  /// memory or records to clear. A worker holds thousands of idle leases beside them.
  const std::map<LeaseId, Tenancy*>& busy() const { return busy_; }
  /// Call it when a lease gets a request, or wants memory or releases a record without one.
  void note_busy(Tenancy& tenancy) { busy_.emplace(tenancy.lease, &tenancy); }

  // ---- tenants

  /// A quota is kept without a lease until it is withdrawn, because it arrives before the grant.
  void set_quota(const wire::TenantQuota& quota);
  /// The limit on the tenant's blocks for this request. A quota that was lowered after the
  /// request's admission does not apply to it.
  std::uint32_t limit_of(const PromptRequest& request) const;
  /// The most blocks that a request of the tenant can ever hold here.
  std::uint32_t most_blocks_of(const TenantId& tenant) const;
  /// Number of tenants with a lease or a quota here.
  std::size_t tenant_count() const { return tenants_.size(); }
  /// Empty for an unknown tenant.
  const std::set<LeaseId>& leases_of(const TenantId& tenant) const;
  /// Blocks held by all leases of the tenant.
  std::uint32_t held_by(const TenantId& tenant) const;
  /// Same as `held_by`, without cached blocks that no sequence uses, because these are evicted when
  /// the tenant needs blocks.
  std::uint32_t used_by(const TenantId& tenant) const;
  std::uint32_t running_of(const TenantAccount& account) const;
  /// Running requests under scavenger leases, or all others.
  std::uint32_t running_of(const TenantAccount& account, bool scavengers) const;
  /// Waiting requests of the tenant; `waiting_count`: of all tenants.
  std::size_t waiting_of(const TenantId& tenant) const;
  std::uint32_t waiting_count() const;

  // ---- turns

  /// Activates the counter of each tenant that has requests, and deactivates the others. Examines
  /// the tenants that changed since the last call, and the busy leases. Those that became idle are
  /// no longer busy.
  void settle_active();
  /// Accounts of tenants with requests that wait under scavenger leases, or under others, in the
  /// order of the first such leases. Sets `owed` of every account with requests to 0.
  std::vector<TenantAccount*> waiting_accounts(bool scavengers = false);

  // ---- growth

  /// Records that the broker refused a GrowthRequest. For swap: until it grants swap, victims are
  /// dropped unless a spill makes room. For KV: if a running sequence lacks a block, and the
  /// request was not for more than the running sequences want, the next plan preempts one sequence
  /// of the lease, or ends it if it runs alone. If no request of the lease runs, its first waiting
  /// request is rejected. `why`: QuotaBlocks for the limit of the tenant or of published texts; any
  /// other code means an exhausted pool.
  void deny_growth(const GrowthRequest& refused, Errc why = Errc::PoolExhausted);
  /// The memory that leases want, as noted since the last call.
  std::vector<GrowthRequest> take_growth_requests();

  // ---- limits of tenants and keys

  /// Records that the request does not need these of its tokens, because they are cached.
  void give_back_cached(PromptRequest& request, std::uint64_t tokens);
  /// Records that the request has ended, with the tokens that it did not use. Call it once.
  void give_back_rest(const PromptRequest& request);
  /// What was given back since the last call.
  std::map<RateOwner, RateReturn> take_returned() { return std::exchange(returned_, {}); }

  // ---- reports to the broker

  /// Records that the tenant's running or waiting requests changed. The tenant may be unknown.
  void note_change(const TenantId& tenant);
  void note_preemption(const Tenancy& tenancy) { service_.note_preemption(tenancy); }
  const std::set<TenantId>& changed_tenants() const { return changed_tenants_; }
  /// The use of divided quotas by the tenants whose use changed since the last call. Examines only
  /// the tenants in `changed_tenants`.
  std::vector<wire::TenantUsage> take_usage();
  /// The service that tenants received since the last call; omits tenants without changes.
  std::vector<wire::TenantServed> take_served() { return service_.take(leases_); }
  /// Sums over all leases, including ended ones.
  PrefixCounters prefix_counters() const { return service_.prefix_counters(leases_); }

 private:
  void forget_if_unused(const TenantId& id);

  std::map<TenantId, TenantAccount> tenants_;
  std::map<LeaseId, Tenancy> leases_;
  std::map<LeaseId, Tenancy*> busy_;  // into leases_
  TokenCounters counters_;
  TokenCounters scavenger_counters_;          // separate, because a batch gives and takes no credit
  std::set<TenantId> changed_tenants_;        // since the last `take_usage`
  std::set<TenantId> unsettled_tenants_;      // since the last `settle_active`
  std::map<RateOwner, RateReturn> returned_;  // since the last `take_returned`
  ServiceReport service_;
};

/// Error text: why the broker refused growth of the lease, and what to do.
std::string reason_of_refusal(const Tenancy& tenancy);
/// The scope of an error that concerns the lease's memory.
inline FailureScope scope_of(const Tenancy& tenancy) {
  return tenancy.is_shared ? FailureScope::Shared : FailureScope::Tenant;
}

}  // namespace leasehold
