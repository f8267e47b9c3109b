#include "broker/decide/tenant/quota.hpp"

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "ipc/segment/gate_set.hpp"

namespace leasehold {
namespace {

/// Upper bound on the requests that a resuming worker runs: its share was set by the earlier broker
/// and is not known.
constexpr std::uint32_t kUnknown = kMaxStepSequences;

bool is_reachable(const Worker* worker) {
  return worker != nullptr && worker->state == WorkerState::Ready && !worker->resuming;
}

/// Assigns the next revision. Revisions start at the time since boot, so that a report about a
/// quota of an earlier broker never matches.
effect::SendQuota send_quota(const Decision& decision, Tenant& tenant, AttachmentId worker,
                             wire::TenantQuota quota) {
  tenant.last_revision =
      std::max(tenant.last_revision + 1, static_cast<std::uint64_t>(decision.now.boottime_ns));
  quota.revision = tenant.last_revision;
  return {worker, std::move(quota)};
}

/// Withdraws the shares of workers without a live lease of the tenant. No request starts under a
/// lease that is not live, so the share is free at once.
void withdraw_ended(const Decision& decision, Tenant& tenant, const LeaseIndex::Holdings& holdings,
                    std::vector<Effect>& quotas) {
  std::erase_if(tenant.shares, [&](const auto& entry) {
    const auto& [worker, share] = entry;
    const auto found = holdings.find(worker);
    if (found != holdings.end() && found->second.live > 0) return false;
    if (share.sent.revision != 0 && is_reachable(decision.state.workers.find(worker)))
      quotas.emplace_back(send_quota(decision, tenant, worker, {.tenant = share.sent.tenant}));
    return true;
  });
  if (!tenant.shares.empty()) return;
  tenant.idle.begin(decision.now);
  ApiKeys& keys = decision.state.api_keys;
  for (const ApiKeyId& key : keys.of(tenant.policy.tenant))
    keys.idle_time(key)->begin(decision.now);
}

/// Updates the shares, so that each worker with live leases has one. A new one is a use: its
/// request may have ended before the worker's next report.
void update_workers(const State& state, const LeaseIndex::Holdings& holdings, Tenant& tenant) {
  for (const auto& [id, holding] : holdings) {
    if (holding.live == 0) continue;
    const bool reachable = is_reachable(state.workers.find(id));
    const auto [entry, added] = tenant.shares.try_emplace(id);
    entry->second.reachable = reachable;
    if (added) ++tenant.uses;
    if (added && !reachable) entry->second.may_run = kUnknown;
  }
}

/// The blocks that the tenant may hold on one worker. The broker charges blocks when it lends them,
/// so a worker may use all of the quota that the other workers do not hold. If the quota was
/// lowered below the sum of the charges, it is divided in proportion to them.
std::uint32_t blocks_on(const LeaseIndex::Holdings& holdings, AttachmentId worker,
                        std::uint32_t max_blocks) {
  std::uint64_t all = 0;
  for (const auto& [id, holding] : holdings) all += holding.live_blocks;
  const std::uint64_t here = holdings.at(worker).live_blocks;
  const std::uint64_t allowed =
      all > max_blocks ? here * max_blocks / all : max_blocks - (all - here);
  return static_cast<std::uint32_t>(allowed);
}

bool is_same_key(const wire::KeyQuota& one, const wire::KeyQuota& other) {
  return one.key == other.key && one.max_concurrent == other.max_concurrent &&
         !differ(one.rates, other.rates);
}

bool is_same(const wire::TenantQuota& one, const wire::TenantQuota& other) {
  return one.max_concurrent == other.max_concurrent && one.max_blocks == other.max_blocks &&
         one.weight == other.weight && one.divided == other.divided &&
         one.request_blocks == other.request_blocks && !differ(one.rates, other.rates) &&
         std::ranges::equal(one.keys, other.keys, is_same_key);
}

/// The limits of a tenant or of one of its keys, which the workers of the tenant divide.
struct Limited {
  ApiKeyId key;  ///< Empty: the tenant.
  wire::KeyLimits limits;
  journal::DayUse use;
  Duration idle{};
};

bool has_limits(const wire::KeyLimits& limits) {
  return limits.max_concurrent || limits.rates != wire::RateLimits{};
}

/// The tenant first, then its keys that have limits. Their idle time ends: workers get parts.
std::vector<Limited> limits_of(State& state, Tenant& tenant, TimePoint now) {
  std::vector<Limited> all{{.limits = {.max_concurrent = {}, .rates = tenant.policy.rates},
                            .use = tenant.use,
                            .idle = tenant.idle.end(now)}};
  for (const ApiKeyId& id : state.api_keys.of(tenant.policy.tenant)) {
    const journal::ApiKeyRow& key = *state.api_keys.find(id);
    if (!has_limits(key.limits)) continue;
    all.push_back({id, key.limits, key.use, state.api_keys.idle_time(id)->end(now)});
  }
  return all;
}

/// Sets the worker's parts. The first of `all` is the tenant.
void set_rates(wire::TenantQuota& quota, const Decision& decision, const Shares& shares,
               const Share& share, std::span<const Limited> all) {
  for (const Limited& each : all) {
    const RateContext context{each.idle, decision.state.wall, decision.now};
    wire::RateParts parts = rate_parts(shares, share, each.limits.rates, each.use, context);
    if (each.key.value.empty()) {
      quota.rates = std::move(parts);
      continue;
    }
    std::optional<std::uint32_t> concurrent = each.limits.max_concurrent;
    if (concurrent) *concurrent = static_cast<std::uint32_t>(part_on(shares, share, *concurrent));
    quota.keys.push_back({each.key, concurrent, std::move(parts)});
  }
}

bool limits_days(const std::vector<Limited>& all) {
  return std::ranges::any_of(
      all, [](const Limited& each) { return each.limits.rates.tokens_per_day.has_value(); });
}

/// The most blocks that one lease on the worker can ever hold. A cell's tenant may get a larger
/// part.
std::uint32_t most_blocks_on(const State& state, const Tenant& tenant, AttachmentId id) {
  const Worker& worker = *state.workers.find(id);
  const std::uint64_t lendable =
      most_extents(state, tenant.policy, worker) * worker.blocks_per_extent;
  const std::uint64_t limit = tenant.policy.cell ? lendable : tenant.policy.max_blocks;
  return static_cast<std::uint32_t>(std::min(limit, lendable));
}

void settle_tenant(Decision& decision, const TenantId& id, std::vector<Effect>& quotas) {
  Tenant* tenant = decision.state.tenants.find(id);
  if (tenant == nullptr) return;
  const LeaseIndex::Holdings& holdings = decision.state.leases.index().of(id);
  withdraw_ended(decision, *tenant, holdings, quotas);
  update_workers(decision.state, holdings, *tenant);
  divide(tenant->shares, tenant->policy.max_concurrent);
  const bool has_worker =
      std::ranges::any_of(tenant->shares, [](const auto& entry) { return entry.second.reachable; });
  if (!has_worker) return;
  const std::vector<Limited> limited = limits_of(decision.state, *tenant, decision.now);
  if (limits_days(limited))
    decision.state.day_quotas_end = decision.state.wall.day_end(decision.now);
  for (auto& [worker, share] : tenant->shares) {
    if (!share.reachable) continue;
    wire::TenantQuota quota{.tenant = id,
                            .max_concurrent = share.assigned,
                            .max_blocks = blocks_on(holdings, worker, tenant->policy.max_blocks),
                            .weight = tenant->policy.weight,
                            .divided = tenant->shares.size() > 1 || tenant->policy.cell,
                            .of_cell = tenant->policy.cell.has_value(),
                            .request_blocks = most_blocks_on(decision.state, *tenant, worker)};
    set_rates(quota, decision, tenant->shares, share, limited);
    if (tenant->policy.cell) quota.rates.starts_empty = tenant->part_workers.insert(worker).second;
    if (share.sent.revision != 0 && is_same(quota, share.sent)) continue;
    effect::SendQuota sent = send_quota(decision, *tenant, worker, std::move(quota));
    share.sent = sent.quota;
    quotas.emplace_back(std::move(sent));
  }
}

/// Adds all tenants that have shares: a changed reserve changes what each of them can ever hold.
void add_served(const State& state, std::set<TenantId>& tenants) {
  for (const auto& [id, tenant] : state.tenants.all())
    if (!tenant.shares.empty()) tenants.insert(id);
}

}  // namespace

std::set<TenantId> tenants_touched(const Decision& decision) {
  const State& state = decision.state;
  const Touched& touched = decision.touched;
  std::set<TenantId> tenants(touched.tenants.begin(), touched.tenants.end());
  if (!tenants.empty()) add_served(state, tenants);
  tenants.insert(touched.usage.begin(), touched.usage.end());
  const auto add = [&](LeaseId id) {
    const LeaseRecord* record = state.leases.in_slot(id.slot);
    if (record != nullptr && !record->tenant.value.empty()) tenants.insert(record->tenant);
  };
  std::ranges::for_each(touched.leases, add);
  for (const AttachmentId worker : touched.workers) {
    std::ranges::for_each(state.leases.leases_on(worker), add);
  }
  return tenants;
}

void settle_quotas(Decision& decision, const std::set<TenantId>& tenants) {
  std::vector<Effect> quotas;
  for (const TenantId& tenant : tenants) settle_tenant(decision, tenant, quotas);
  std::vector<Effect>& effects = decision.effects();
  const auto first_grant = std::ranges::find_if(
      effects, [](const Effect& each) { return std::holds_alternative<effect::SendGrant>(each); });
  effects.insert(first_grant, std::make_move_iterator(quotas.begin()),
                 std::make_move_iterator(quotas.end()));
}

void withdraw_quotas(Decision& decision, Tenant& tenant) {
  std::vector<Effect> quotas;
  withdraw_ended(decision, tenant, {}, quotas);
  for (Effect& each : quotas) decision.add(std::move(each));
}

void begin_day(Decision& decision) {
  State& state = decision.state;
  if (state.day_quotas_end == TimePoint{}) return;
  state.day_quotas_end = {};
  for (const auto& [id, tenant] : state.tenants.all())
    if (!tenant.shares.empty()) decision.touched.usage.push_back(id);
}

void decide_event(Decision& decision, const UsageReported& reported) {
  const Worker* worker = decision.state.workers.find_by_connection(reported.connection);
  Tenant* tenant = decision.state.tenants.find(reported.usage.tenant);
  if (worker == nullptr || tenant == nullptr) return;
  tenant->uses += enter_report(tenant->shares, worker->id, reported.usage);
  decision.touched.usage.push_back(reported.usage.tenant);
}

/// Removes the counts of cached blocks for workers that are gone. What they served stays counted.
void decide_event(Decision& decision, const ServedReported& reported) {
  const Worker* worker = decision.state.workers.find_by_connection(reported.connection);
  Tenant* tenant = decision.state.tenants.find(reported.served.tenant);
  if (worker == nullptr || tenant == nullptr) return;
  std::erase_if(tenant->cached_blocks, [&](const auto& cached) {
    const Worker* caching = decision.state.workers.find(cached.first);
    return caching == nullptr || caching->state == WorkerState::Gone;
  });
  tenant->cached_blocks[worker->id] = reported.served.cached_blocks;
  tenant->served.add(reported.served);
}

}  // namespace leasehold
