/// The views of tenants, their keys and their cell. Pure.
#pragma once

#include <optional>
#include <vector>

#include "broker/books/state.hpp"

namespace leasehold {

/// At most `limit` tenants after `after`, ordered by name.
std::vector<wire::TenantView> tenant_views(const State& state, const std::optional<TenantId>& after,
                                           std::size_t limit, TimePoint now);
/// The view of one tenant; empty if the broker does not know it.
std::vector<wire::TenantView> view_of_tenant(const State& state, const TenantId& id, TimePoint now);
/// All keys of one tenant, ordered by id.
std::vector<wire::KeyView> keys_of_tenant(const State& state, const TenantId& tenant,
                                          TimePoint now);
/// At most `limit` keys after `after`, ordered by id.
std::vector<wire::KeyView> key_views(const State& state, const std::optional<ApiKeyId>& after,
                                     std::size_t limit, TimePoint now);
/// Nothing until an agent has attached.
std::optional<wire::CellView> cell_view(const State& state, TimePoint now);

}  // namespace leasehold
