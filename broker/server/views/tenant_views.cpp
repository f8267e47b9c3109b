#include "broker/server/views/tenant_views.hpp"

#include <algorithm>
#include <map>

#include "broker/decide/tenant/cell.hpp"
#include "broker/server/views/adapter_views.hpp"
#include "broker/server/views/views.hpp"

namespace leasehold {
namespace {

using HeldByTenant = std::map<TenantId, struct Held>;

struct Held {
  std::uint32_t leases_live = 0;
  std::uint32_t blocks = 0;
  std::uint64_t swap_blocks = 0;
};

/// Computes the holdings of all tenants in one pass over the leases.
HeldByTenant held_by_tenant(const State& state) {
  HeldByTenant all;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.is(LeaseState::Fenced) || record.scope == wire::LeaseScope::Adapter) return;
    Held& held = all[record.tenant];
    if (record.is(LeaseState::Live)) ++held.leases_live;
    held.blocks += record.quota_blocks();
    const Worker* worker = state.workers.find(record.worker());
    const std::uint64_t per_extent = worker == nullptr ? 0 : worker->blocks_per_extent;
    held.swap_blocks += state.extents.of_pool(MemoryPool::Swap, record.extents).size() * per_extent;
  });
  return all;
}

wire::TenantServed served_by_all(const State& state, const TenantId& id, const Tenant& tenant) {
  wire::TenantServed served = tenant.served;
  served.tenant = id;
  served.cached_blocks = 0;
  for (const auto& [worker, blocks] : tenant.cached_blocks) {
    const Worker* caching = state.workers.find(worker);
    if (caching != nullptr && caching->state != WorkerState::Gone) served.cached_blocks += blocks;
  }
  return served;
}

wire::TenantView view_of(const State& state, const Tenant& tenant, const HeldByTenant& held,
                         TimePoint now) {
  const TenantId& id = tenant.policy.tenant;
  wire::TenantView view{.policy = tenant.policy,
                        .draining = tenant.draining,
                        .served = served_by_all(state, id, tenant),
                        .rebinds = summary_of(tenant.rebind_latencies, now),
                        .tokens_today = tenant.use.tokens_on(state.wall.day(now))};
  if (tenant.policy.cell) view.part = part_of(state, tenant);
  for (const LeaseId lease : state.leases.index().adapters_of(id)) {
    ++view.adapter_leases;
    view.adapter_bytes += bytes_of_adapter(state, *state.leases.find_open(lease));
  }
  const auto holds = held.find(id);
  if (holds == held.end()) return view;
  view.leases_live = holds->second.leases_live;
  view.blocks_held = holds->second.blocks;
  view.swap_blocks_held = static_cast<std::uint32_t>(holds->second.swap_blocks);
  return view;
}

}  // namespace

std::vector<wire::TenantView> tenant_views(const State& state, const std::optional<TenantId>& after,
                                           std::size_t limit, TimePoint now) {
  const HeldByTenant held = held_by_tenant(state);
  std::vector<wire::TenantView> views;
  const auto& tenants = state.tenants.all();
  auto next = after ? tenants.upper_bound(*after) : tenants.begin();
  for (; next != tenants.end() && views.size() < limit; ++next)
    views.push_back(view_of(state, next->second, held, now));
  return views;
}

std::vector<wire::TenantView> view_of_tenant(const State& state, const TenantId& id,
                                             TimePoint now) {
  const Tenant* tenant = state.tenants.find(id);
  if (tenant == nullptr) return {};
  return {view_of(state, *tenant, held_by_tenant(state), now)};
}

std::vector<wire::KeyView> key_views(const State& state, const std::optional<ApiKeyId>& after,
                                     std::size_t limit, TimePoint now) {
  std::vector<wire::KeyView> views;
  const auto& keys = state.api_keys.all();
  auto next = after ? keys.upper_bound(*after) : keys.begin();
  for (; next != keys.end() && views.size() < limit; ++next)
    views.push_back(view_of(next->second, state.wall, now));
  return views;
}

std::vector<wire::KeyView> keys_of_tenant(const State& state, const TenantId& tenant,
                                          TimePoint now) {
  std::vector<wire::KeyView> views;
  for (const ApiKeyId& key : state.api_keys.of(tenant))
    views.push_back(view_of(*state.api_keys.find(key), state.wall, now));
  return views;
}

/// As many blocks as the ready worker with the smallest ones has room for.
static std::uint32_t free_blocks(const State& state) {
  std::uint32_t per_extent = 0;
  for (const auto& [id, worker] : state.workers.all())
    if (worker.state == WorkerState::Ready)
      per_extent = std::max(per_extent, worker.blocks_per_extent);
  return state.extents.free_extents() * per_extent;
}

std::optional<wire::CellView> cell_view(const State& state, TimePoint now) {
  const Cell& cell = state.cell;
  if (!cell.name) return std::nullopt;
  constexpr std::chrono::milliseconds kMs{1};
  const auto tenants = std::ranges::count_if(state.tenants.all(), [&](const auto& entry) {
    return entry.second.policy.cell == cell.name;
  });
  return wire::CellView{
      .cell = *cell.name,
      .has_agent = cell.agent != ConnectionId{},
      .incarnation = cell.incarnation,
      .ceiling_boottime_ns = cell.ceiling.boottime_ns,
      .ceiling_age_ms = cell.heard_at == TimePoint{} ? 0 : (now - cell.heard_at) / kMs,
      .ceiling_left_ms = cell.ceiling > now ? (cell.ceiling - now) / kMs : 0,
      .tenants = static_cast<std::uint32_t>(tenants),
      .free_blocks = free_blocks(state)};
}

}  // namespace leasehold
