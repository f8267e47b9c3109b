#include "worker/schedule/tenants/tenancies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/expects.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/segment/gate_set.hpp"

namespace leasehold {
namespace {

/// Reported counts are capped here; the broker needs none above the largest quota.
constexpr std::uint32_t kMostReported = kMaxStepSequences;

/// The quota of fills, which no tenant pays for; the broker limits the blocks of shared leases.
wire::TenantQuota quota_of_fills() {
  return {.tenant = public_owner(),
          .max_concurrent = wire::kConcurrent.high,
          .max_blocks = wire::kBlocks.high};
}

bool is_same(const wire::TenantUsage& one, const wire::TenantUsage& other) {
  return one.revision == other.revision && one.running == other.running &&
         one.waiting == other.waiting && one.admitted == other.admitted;
}

}  // namespace

// --------------------------------------------------------------------------------------- leases

void Tenancies::add(Tenancy tenancy) {
  expects(tenancy.running == 0 && tenancy.waiting.empty() && tenancy.pool.total_blocks() == 0,
          "a new lease has no blocks or requests");
  const LeaseId lease = tenancy.lease;
  expects(tenancy.is_shared == (tenancy.tenant == public_owner()),
          "a shared lease belongs to no tenant");
  tenancy.account = &tenants_[tenancy.tenant];
  if (tenancy.is_shared) tenancy.account->quota = quota_of_fills();
  tenancy.account->leases.insert(lease);
  const bool added = leases_.emplace(lease, std::move(tenancy)).second;
  expects(added, "a lease is added once");
}

void Tenancies::erase(LeaseId lease) {
  Tenancy& tenancy = leases_.at(lease);
  service_.note_end(tenancy);
  const TenantId tenant = tenancy.tenant;
  busy_.erase(lease);
  leases_.erase(lease);
  tenants_.at(tenant).leases.erase(lease);
  forget_if_unused(tenant);
}

std::vector<LeaseId> Tenancies::ids() const {
  const auto ids = std::views::keys(leases_);
  return {ids.begin(), ids.end()};
}

// -------------------------------------------------------------------------------------- tenants

void Tenancies::set_quota(const wire::TenantQuota& quota) {
  tenants_[quota.tenant].quota = quota;
  changed_tenants_.insert(quota.tenant);
  // A restarted broker sends the quota again.
  service_.repeat_cached_blocks(quota.tenant);
  forget_if_unused(quota.tenant);
}

void Tenancies::forget_if_unused(const TenantId& id) {
  const auto found = tenants_.find(id);
  const bool may_return = !found->second.quota.is_withdrawn() && id != public_owner();
  if (found->second.leases.empty() && !may_return) tenants_.erase(found);
}

std::uint32_t Tenancies::limit_of(const PromptRequest& request) const {
  const auto found = tenants_.find(request.tenant);
  const wire::TenantQuota nothing;
  const wire::TenantQuota& quota = found == tenants_.end() ? nothing : found->second.quota;
  return std::max(request.block_limit, quota.max_blocks);
}

std::uint32_t Tenancies::most_blocks_of(const TenantId& tenant) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return 0;
  return found->second.quota.request_blocks.value_or(found->second.quota.max_blocks);
}

const std::set<LeaseId>& Tenancies::leases_of(const TenantId& tenant) const {
  static const std::set<LeaseId> kNone;
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? kNone : found->second.leases;
}

std::uint32_t Tenancies::held_by(const TenantId& tenant) const {
  std::uint32_t held = 0;
  for (const LeaseId lease : leases_of(tenant)) held += leases_.at(lease).pool.held_blocks();
  return held;
}

std::uint32_t Tenancies::used_by(const TenantId& tenant) const {
  std::uint32_t used = 0;
  for (const LeaseId lease : leases_of(tenant)) used += leases_.at(lease).used_blocks();
  return used;
}

std::uint32_t Tenancies::running_of(const TenantAccount& account) const {
  std::uint32_t running = 0;
  for (const LeaseId lease : account.leases) running += leases_.at(lease).running;
  return running;
}

std::uint32_t Tenancies::running_of(const TenantAccount& account, bool scavengers) const {
  std::uint32_t running = 0;
  for (const LeaseId lease : account.leases) {
    const Tenancy& tenancy = leases_.at(lease);
    if (tenancy.is_scavenger == scavengers) running += tenancy.running;
  }
  return running;
}

std::size_t Tenancies::waiting_of(const TenantId& tenant) const {
  std::size_t waiting = 0;
  for (const LeaseId lease : leases_of(tenant)) waiting += leases_.at(lease).waiting.size();
  return waiting;
}

std::uint32_t Tenancies::waiting_count() const {
  std::size_t waiting = 0;
  for (const auto& [lease, tenancy] : busy_) waiting += tenancy->waiting.size();
  return static_cast<std::uint32_t>(waiting);
}

// ---------------------------------------------------------------------------------------- turns

void Tenancies::settle_active() {
  for (const TenantId& id : std::exchange(unsettled_tenants_, {})) {
    const auto found = tenants_.find(id);
    if (found == tenants_.end()) {
      counters_.set_active(id, false);
      scavenger_counters_.set_active(id, false);
      continue;
    }
    TenantAccount& account = found->second;
    const auto has_requests = [&](bool scavengers) {
      return std::ranges::any_of(account.leases, [this, scavengers](LeaseId lease) {
        const Tenancy& tenancy = leases_.at(lease);
        return tenancy.is_scavenger == scavengers && tenancy.has_requests();
      });
    };
    account.counter = counters_.set_active(id, has_requests(false));
    account.scavenger_counter = scavenger_counters_.set_active(id, has_requests(true));
  }
  std::erase_if(busy_, [](const auto& entry) { return entry.second->is_idle(); });
}

std::vector<TenantAccount*> Tenancies::waiting_accounts(bool scavengers) {
  for (const auto& [lease, tenancy] : busy_) {
    tenancy->account->owed = 0;
    tenancy->account->takes_turn = false;
  }
  std::vector<TenantAccount*> waiting;
  for (const auto& [lease, tenancy] : busy_) {
    if (tenancy->is_scavenger != scavengers || tenancy->waiting.empty()) continue;
    if (!std::exchange(tenancy->account->takes_turn, true)) waiting.push_back(tenancy->account);
  }
  return waiting;
}

// --------------------------------------------------------------------------------------- growth

void Tenancies::deny_growth(const GrowthRequest& refused, Errc why) {
  const auto found = leases_.find(refused.lease);
  if (found == leases_.end()) return;
  note_busy(found->second);
  if (refused.pool == wire::MemoryPool::Swap) {
    found->second.growth.deny_swap();
  } else {
    found->second.growth.deny(refused.blocks, why);
  }
}

std::vector<GrowthRequest> Tenancies::take_growth_requests() {
  std::vector<GrowthRequest> growth_requests;
  for (const auto& [lease, tenancy] : busy_) {
    const std::uint32_t wanted = tenancy->growth.take_wanted();
    if (wanted > 0) growth_requests.push_back({.lease = lease, .blocks = wanted});
    const std::uint32_t swap = tenancy->growth.take_swap_wanted();
    if (swap > 0) growth_requests.push_back({lease, swap, wire::MemoryPool::Swap});
  }
  return growth_requests;
}

std::string reason_of_refusal(const Tenancy& tenancy) {
  if (!tenancy.growth.is_at_quota()) return "the broker lends no more; retry later";
  if (tenancy.is_shared) return "published texts hold all that --max-shared-blocks allows";
  return fmt::format("the leases of tenant {} hold its quota; end one, or raise --max-blocks",
                     tenancy.tenant.value);
}

// -------------------------------------------------------------------- limits of tenants and keys

void Tenancies::give_back_cached(PromptRequest& request, std::uint64_t tokens) {
  RateCharge& charge = request.rate_charge;
  const std::uint64_t given = std::min(tokens, charge.unused_tokens);
  charge.unused_tokens -= given;
  charge.held_tokens -= std::min(given, charge.held_tokens);
  for (const RateOwner& owner : charge.owners)
    returned_[owner].add({.unused_tokens = given, .held_tokens = given});
}

void Tenancies::give_back_rest(const PromptRequest& request) {
  const RateCharge& charge = request.rate_charge;
  for (const RateOwner& owner : charge.owners) {
    returned_[owner].add(
        {.unused_tokens = charge.unused_tokens, .held_tokens = charge.held_tokens, .ended = 1});
  }
}

// -------------------------------------------------------------------------------------- reports

void Tenancies::note_change(const TenantId& tenant) {
  changed_tenants_.insert(tenant);
  unsettled_tenants_.insert(tenant);
}

std::vector<wire::TenantUsage> Tenancies::take_usage() {
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

}  // namespace leasehold
