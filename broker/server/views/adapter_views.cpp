#include "broker/server/views/adapter_views.hpp"

#include <algorithm>
#include <map>

#include "broker/decide/memory/reserves.hpp"

namespace leasehold {
namespace {

using LeasesByName = std::map<std::string, std::vector<wire::AdapterLeaseView>>;

LeasesByName leases_by_name(const State& state) {
  LeasesByName leases;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.scope != wire::LeaseScope::Adapter) return;
    const Worker* worker = state.workers.find(record.worker());
    leases[record.part].push_back({.lease = record.id(),
                                   .worker = worker == nullptr ? "" : worker->name,
                                   .version = record.adapter_version,
                                   .state = record.state(),
                                   .filled = record.filled,
                                   .size_bytes = bytes_of_adapter(state, record)});
  });
  return leases;
}

std::optional<TenantId> owner_of(const journal::AdapterRow& adapter) {
  return adapter.tenant.value.empty() ? std::nullopt : std::optional(adapter.tenant);
}

std::optional<std::string> digest_of(const journal::AdapterRow& adapter) {
  return adapter.digest.empty() ? std::nullopt : std::optional(adapter.digest);
}

}  // namespace

std::uint64_t bytes_of_adapter(const State& state, const LeaseRecord& record) {
  return kv_extents(state, record) * state.extents.extent_size_bytes();
}

void count_adapter(const State& state, const LeaseRecord& record, wire::StatusView& view) {
  if (record.scope != wire::LeaseScope::Adapter || record.is(LeaseState::Fenced)) return;
  view.adapter_bytes += bytes_of_adapter(state, record);
  if (!record.is(LeaseState::Live)) {
    ++view.adapters_ending;
  } else {
    ++(record.filled ? view.adapters_loaded : view.adapters_loading);
  }
}

std::vector<wire::AdapterView> adapter_views(const State& state, const wire::AdapterList& request) {
  LeasesByName leases = leases_by_name(state);
  std::vector<wire::AdapterView> views;
  const auto& all = state.adapters.all();
  auto next = request.after ? all.upper_bound(*request.after) : all.begin();
  for (; next != all.end() && views.size() <= request.limit; ++next) {
    const journal::AdapterRow& row = next->second;
    std::vector<wire::AdapterLeaseView>& held = leases[row.id.value];
    const bool is_wanted = !request.tenant || row.tenant == *request.tenant;
    if (!is_wanted || (row.removed && held.empty())) continue;
    views.push_back({.adapter = row.id,
                     .version = row.version,
                     .tenant = owner_of(row),
                     .file = row.file,
                     .pinned = row.pinned,
                     .digest = digest_of(row),
                     .removed = row.removed,
                     .leases = std::move(held)});
  }
  return views;
}

wire::AdapterResolved resolved(const journal::AdapterRow& adapter) {
  return {.adapter = adapter.id,
          .version = adapter.version,
          .file = adapter.file,
          .tenant = owner_of(adapter),
          .pinned = adapter.pinned,
          .digest = digest_of(adapter)};
}

wire::AdaptersVisible visible_adapters(const State& state, const TenantId& tenant) {
  wire::AdaptersVisible visible;
  for (const auto& [name, row] : state.adapters.all()) {
    if (state.adapters.find_for(tenant, name) != nullptr)
      visible.adapters.push_back({.adapter = name, .version = row.version});
  }
  return visible;
}

}  // namespace leasehold
