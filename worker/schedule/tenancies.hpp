/// The leases of a worker and their tenants: quotas, what each tenant uses here, whose counter is
/// active, and what is reported to the broker.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "ipc/control/messages_worker.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/token_counters.hpp"

namespace leasehold {

class Tenancies {
 public:
  explicit Tenancies(std::uint32_t tokens_per_block) : tokens_per_block_(tokens_per_block) {}

  // ---- leases, in the order of their ids

  /// Preconditions: the lease is not known yet, and has no blocks or requests.
  void add(Tenancy tenancy);
  /// Precondition: the lease is known. What it was served is kept for `take_served`.
  void erase(LeaseId lease);
  bool contains(LeaseId lease) const { return leases_.contains(lease); }
  /// Precondition: the lease is known.
  Tenancy& at(LeaseId lease) { return leases_.at(lease); }
  const Tenancy& at(LeaseId lease) const { return leases_.at(lease); }
  auto find(LeaseId lease) { return leases_.find(lease); }
  auto find(LeaseId lease) const { return leases_.find(lease); }
  auto begin() { return leases_.begin(); }
  auto begin() const { return leases_.begin(); }
  auto end() { return leases_.end(); }
  auto end() const { return leases_.end(); }

  // ---- tenants

  /// A quota that is not withdrawn is kept without a lease, because it precedes a grant.
  void set_quota(const wire::TenantQuota& quota);
  /// The blocks that the tenant may hold here so that this request goes on: a quota lowered after
  /// its admission does not end it.
  std::uint32_t limit_of(const PromptRequest& request) const;
  /// The blocks that a request of the tenant can ever hold here.
  std::uint32_t most_blocks_of(const TenantId& tenant) const;
  /// Tenants with a lease or a quota here.
  std::size_t tenant_count() const { return tenants_.size(); }
  /// Empty for an unknown tenant.
  const std::set<LeaseId>& leases_of(const TenantId& tenant) const;
  /// Blocks of all its leases.
  std::uint32_t held_by(const TenantId& tenant) const;
  /// Likewise, without cached blocks that no sequence uses: those give way to whatever the tenant
  /// needs.
  std::uint32_t used_by(const TenantId& tenant) const;
  std::uint32_t running_of(const TenantAccount& account) const;
  /// Waiting requests of the tenant, and of all.
  std::size_t waiting_of(const TenantId& tenant) const;
  std::size_t waiting_count() const;

  // ---- turns

  /// Gives a counter to each tenant that has requests since the last call, and takes it from those
  /// that have none.
  void settle_active();
  /// Accounts of tenants with waiting requests, in the order of their ids. Sets `owed` of every
  /// account to 0.
  std::vector<TenantAccount*> waiting_accounts();

  // ---- reports to the broker

  /// The running or waiting requests of the tenant changed. It may be unknown.
  void note_change(const TenantId& tenant);
  void note_preemption(const Tenancy& tenancy);
  const std::set<TenantId>& changed_tenants() const { return changed_tenants_; }
  /// The use of divided quotas, of tenants whose use changed since the last call. Reads the tenants
  /// that `changed_tenants` lists, and no other.
  std::vector<wire::TenantUsage> take_usage();
  /// What tenants were served since the last call. Leaves out those without a change.
  std::vector<wire::TenantServed> take_served();

 private:
  bool has_waiting(const TenantAccount& account) const;
  void forget_if_unused(const TenantId& id);
  void note_served(Tenancy& tenancy);

  std::uint32_t tokens_per_block_;
  std::map<TenantId, TenantAccount> tenants_;
  std::map<LeaseId, Tenancy> leases_;
  TokenCounters counters_;
  std::set<TenantId> changed_tenants_;               // since the last `take_usage`
  std::set<TenantId> unsettled_tenants_;             // since the last `settle_active`
  std::map<TenantId, wire::TenantServed> served_;    // noted since the last `take_served`
  std::map<TenantId, std::uint32_t> cached_blocks_;  // at the last `take_served`; none is 0
};

}  // namespace leasehold
