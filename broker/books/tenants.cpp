#include "broker/books/tenants.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ipc/control/messages/limits.hpp"

namespace leasehold {
namespace {

Result<void> check_range(const char* field, std::int64_t value, std::int64_t low,
                         std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(Errc::BadRequest,
              fmt::format("{} is {}; it must be {} to {}", field, value, low, high));
}

Result<void> check_reserve(const wire::TenantPolicy& policy) {
  if (policy.reserved_blocks > policy.max_blocks) {
    return fail(Errc::BadRequest,
                fmt::format("reserved_blocks is {}; it must be 0 to max_blocks, {}",
                            policy.reserved_blocks, policy.max_blocks));
  }
  if (policy.reserved_blocks == 0 || policy.tier == wire::Tier::Guaranteed) return {};
  return fail(Errc::BadRequest,
              fmt::format("reserved_blocks is {}, but tier {} has no reserve; set the tier to "
                          "guaranteed, or reserved_blocks to 0",
                          policy.reserved_blocks, wire::name(policy.tier)));
}

Result<void> check_rates(const wire::RateLimits& rates) {
  constexpr std::int64_t kPerMinute = wire::kMostPerMinute;
  constexpr std::int64_t kPerDay = wire::kMostPerDay;
  TRY(check_range("tokens_per_minute", rates.tokens_per_minute.value_or(1), 1, kPerMinute));
  TRY(check_range("requests_per_minute", rates.requests_per_minute.value_or(1), 1, kPerMinute));
  const std::uint64_t day = std::min(rates.tokens_per_day.value_or(1), wire::kMostPerDay + 1);
  return check_range("tokens_per_day", static_cast<std::int64_t>(day), 1, kPerDay);
}

constexpr std::uint64_t kMostBytes = wire::kAdapterBytes.high;

/// Retry interval: it is not known when another lease of the tenant will end.
constexpr std::int64_t kOtherLeaseEnds_ms = 1'000;

Rate rebind_rate(const wire::TenantPolicy& policy) {
  return {.per_second = policy.rebinds_per_minute / 60.0,
          .burst = static_cast<double>(policy.rebind_burst)};
}

}  // namespace

Result<void> check_policy(const wire::TenantPolicy& policy) {
  const std::int64_t least = policy.cell ? 0 : 1;
  TRY(check_range("max_concurrent", policy.max_concurrent, least, 64));
  TRY(check_range("max_blocks", policy.max_blocks, least, 1 << 20));
  TRY(check_range("weight", policy.weight, 1, 1000));
  TRY(check_range("rebinds_per_minute", policy.rebinds_per_minute, 1, 6'000'000));
  TRY(check_range("rebind_burst", policy.rebind_burst, 1, 1 << 20));
  TRY(check_rates(policy.rates));
  TRY(check_range("max_adapters", policy.max_adapters, 0, wire::kMaxAdaptersPerOwner));
  TRY(check_range("max_adapter_bytes",
                  static_cast<std::int64_t>(std::min(policy.max_adapter_bytes, kMostBytes + 1)), 0,
                  static_cast<std::int64_t>(kMostBytes)));
  TRY(check_range("ttl_ms", policy.ttl_ms, 100, 86'400'000));
  return check_reserve(policy);
}

Result<void> Tenants::admit(const wire::TenantPolicy& policy, TimePoint now) {
  auto checked = check_policy(policy);
  if (!checked) return checked;
  const Rate rate = rebind_rate(policy);
  const auto [it, added] = tenants_.try_emplace(
      policy.tenant,
      Tenant{.policy = policy, .rebinds = RebindLimiter(rate, now), .idle = IdleTime(now)});
  reserved_blocks_ += policy.reserved_blocks;
  if (added) return {};
  reserved_blocks_ -= it->second.policy.reserved_blocks;
  it->second.policy = policy;
  it->second.rebinds.set_rate(rate, now);
  return {};
}

void Tenants::remove(const TenantId& tenant) {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return;
  reserved_blocks_ -= found->second.policy.reserved_blocks;
  tenants_.erase(found);
  unwritten_removals_.insert(tenant);
}

bool Tenants::set_draining(const TenantId& tenant, bool draining) {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return false;
  found->second.draining = draining;
  return true;
}

void Tenants::note_revoked(const TenantId& tenant, LeaseId lease, RevokeReason reason,
                           TimePoint now) {
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end()) found->second.rebinds.note_revoked(lease, reason, now);
}

Tenant* Tenants::find(const TenantId& tenant) {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? nullptr : &found->second;
}

const Tenant* Tenants::find(const TenantId& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? nullptr : &found->second;
}

Result<const Tenant*> Tenants::find_for(const TenantId& tenant, std::uint32_t uid) const {
  const Tenant* found = find(tenant);
  const bool may_use = found != nullptr && found->policy.uid.value_or(uid) == uid;
  if (may_use) return found;
  return fail(Errc::UnknownTenant,
              fmt::format("no tenant {} for user {}; an operator admits it with `brokerctl tenants "
                          "admit`, or names this user with its --uid",
                          tenant.value, uid));
}

void apply_changes(wire::RateLimits& rates, const wire::RateLimits& changes) {
  if (changes.tokens_per_minute) rates.tokens_per_minute = changes.tokens_per_minute;
  if (changes.requests_per_minute) rates.requests_per_minute = changes.requests_per_minute;
  if (changes.tokens_per_day) rates.tokens_per_day = changes.tokens_per_day;
}

wire::TenantPolicy with_changes(const Tenant* tenant, const wire::TenantAdmit& changes) {
  wire::TenantPolicy policy = tenant == nullptr ? wire::TenantPolicy{} : tenant->policy;
  policy.tenant = changes.tenant;
  policy.max_concurrent = changes.max_concurrent.value_or(policy.max_concurrent);
  policy.max_blocks = changes.max_blocks.value_or(policy.max_blocks);
  policy.reserved_blocks = changes.reserved_blocks.value_or(policy.reserved_blocks);
  policy.weight = changes.weight.value_or(policy.weight);
  policy.tier = changes.tier.value_or(policy.tier);
  policy.ttl_ms = changes.ttl_ms.value_or(policy.ttl_ms);
  policy.rebinds_per_minute = changes.rebinds_per_minute.value_or(policy.rebinds_per_minute);
  policy.rebind_burst = changes.rebind_burst.value_or(policy.rebind_burst);
  if (changes.max_lifetime_ms) policy.max_lifetime_ms = changes.max_lifetime_ms;
  apply_changes(policy.rates, changes.rates);
  policy.max_adapters = changes.max_adapters.value_or(policy.max_adapters);
  policy.max_adapter_bytes = changes.max_adapter_bytes.value_or(policy.max_adapter_bytes);
  if (changes.uid) policy.uid = changes.uid;
  return policy;
}

Result<BlockAllowance> allow_blocks(const BlockDemand& demand) {
  const std::uint32_t room = demand.max_blocks - std::min(demand.max_blocks, demand.charged_others);
  const std::uint32_t wanted =
      demand.wanted == 0 ? std::min(demand.blocks_per_extent, room) : demand.wanted;
  if (wanted == 0 || wanted > room) {
    const std::string shortage =
        demand.wanted == 0 ? "none is left" : fmt::format("{} were asked for", demand.wanted);
    const bool fits_later = demand.charged_others > 0 && demand.wanted <= demand.max_blocks;
    return std::unexpected(
        Error{.code = Errc::QuotaBlocks,
              .detail = fmt::format(
                  "its leases hold {} of at most {} blocks, and {}; {}, or raise --max-blocks",
                  demand.charged_others, demand.max_blocks, shortage,
                  fits_later ? "end one" : "ask for fewer"),
              .retry_after_ms = fits_later ? kOtherLeaseEnds_ms : 0});
  }
  const std::uint64_t per_extent = demand.blocks_per_extent;
  const std::uint64_t extents = (wanted + per_extent - 1) / per_extent;
  return BlockAllowance{
      .extents = static_cast<std::uint32_t>(extents),
      .charged = static_cast<std::uint32_t>(std::min<std::uint64_t>(extents * per_extent, room))};
}

}  // namespace leasehold
