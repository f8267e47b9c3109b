// The part of Scheduler that knows what tenants may use and what they do use.
#include <algorithm>
#include <utility>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {
namespace {

/// The broker needs no count above the largest quota.
constexpr std::uint32_t kMostReported = kMaxStepSequences;

bool is_same(const wire::TenantUsage& one, const wire::TenantUsage& other) {
  return one.revision == other.revision && one.running == other.running &&
         one.waiting == other.waiting && one.admitted == other.admitted;
}

}  // namespace

void Scheduler::set_quota(const wire::TenantQuota& quota) {
  tenants_[quota.tenant].quota = quota;
  evict_above(quota.tenant, quota.max_blocks);
  changed_tenants_.insert(quota.tenant);
  cached_blocks_.erase(quota.tenant);  // a broker that restarted sends quotas again
  forget_if_unused(quota.tenant);
}

/// A quota that is not withdrawn precedes a grant, so it is kept without a lease.
void Scheduler::forget_if_unused(const TenantId& id) {
  const auto found = tenants_.find(id);
  const bool may_return = !found->second.quota.is_withdrawn() && id != public_owner();
  if (found->second.leases.empty() && !may_return) tenants_.erase(found);
}

std::vector<wire::TenantUsage> Scheduler::take_usage() {
  std::vector<wire::TenantUsage> changed;
  for (const TenantId& id : std::exchange(changed_tenants_, {})) {
    const auto found = tenants_.find(id);
    if (found == tenants_.end() || !found->second.quota.divided) continue;
    TenantAccount& tenant = found->second;
    wire::TenantUsage usage{.tenant = id,
                            .revision = tenant.quota.revision,
                            .running = running_of(tenant),
                            .admitted = tenant.admitted};
    usage.waiting =
        static_cast<std::uint32_t>(std::min<std::size_t>(waiting_of(id), kMostReported));
    if (is_same(usage, tenant.reported)) continue;
    tenant.reported = usage;
    changed.push_back(std::move(usage));
  }
  return changed;
}

/// A request that the quota can no longer hold does not wait for blocks that never come. While the
/// tenant runs others here, the quota of this worker may still grow.
bool Scheduler::reject_too_large(Tenancy& tenancy) {
  if (tenancy.waiting.empty()) return false;
  const auto fits = check_blocks(tenancy.waiting.front());
  if (fits || running_of(*tenancy.account) > 0) return false;
  reject(tenancy.waiting.front(), fits.error());
  tenancy.waiting.pop_front();
  return true;
}

void Scheduler::note_change(const TenantId& tenant) {
  changed_tenants_.insert(tenant);
  unsettled_tenants_.insert(tenant);
}

const wire::TenantQuota& Scheduler::quota_of(const TenantId& tenant) const {
  static const wire::TenantQuota kNothing;
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? kNothing : found->second.quota;
}

std::size_t Scheduler::waiting_of(const TenantId& tenant) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return 0;
  std::size_t waiting = 0;
  for (const LeaseId lease : found->second.leases) waiting += tenancies_.at(lease).waiting.size();
  return waiting;
}

std::uint64_t Scheduler::prompt_tokens_pending(const TenantId& tenant) const {
  std::uint64_t pending = 0;
  for (const auto& sequence : running_) {
    if (sequence->request.tenant == tenant) pending += sequence->prompt_rows(sequence->pending());
  }
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return pending;
  for (const LeaseId lease : found->second.leases) {
    for (const PromptRequest& request : tenancies_.at(lease).waiting)
      pending += uncharged_tokens(request);
  }
  return pending;
}

bool Scheduler::has_waiting(const TenantAccount& account) const {
  return std::ranges::any_of(
      account.leases, [this](LeaseId lease) { return !tenancies_.at(lease).waiting.empty(); });
}

std::uint32_t Scheduler::running_of(const TenantAccount& account) const {
  std::uint32_t running = 0;
  for (const LeaseId lease : account.leases) running += tenancies_.at(lease).running;
  return running;
}

/// The blocks that the tenant may hold here so that this request goes on: a quota lowered after its
/// admission does not end it.
std::uint32_t Scheduler::limit_of(const PromptRequest& request) const {
  return std::max(request.block_limit, quota_of(request.tenant).max_blocks);
}

/// Without cached blocks that no sequence uses: they give way to whatever the tenant needs.
std::uint32_t Scheduler::used_by(const TenantId& tenant) const {
  std::uint32_t used = 0;
  for (const LeaseId lease : tenants_.at(tenant).leases) used += used_blocks(tenancies_.at(lease));
  return used;
}

std::uint32_t Scheduler::held_by(const TenantId& tenant) const {
  std::uint32_t held = 0;
  for (const LeaseId lease : tenants_.at(tenant).leases)
    held += tenancies_.at(lease).pool.held_blocks();
  return held;
}

}  // namespace leasehold
