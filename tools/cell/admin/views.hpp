/// What the commands read of a cell before they show or change it. Internal to the commands.
#pragma once

#include <utility>
#include <vector>

#include "tools/cell/admin/calls.hpp"
#include "tools/cell/decide/tenant_view.hpp"

namespace leasehold::cell {

/// The terms of the cell; the default ones without a config. Errors: those of read_config.
Result<CellConfig> read_terms(const Calls& calls);
/// Errors: those of view_of.
Result<TenantView> read_view(const Calls& calls, const TenantId& tenant);
/// API keys without their hashes.
cli::Table keys_table(const std::vector<std::pair<ApiKeyId, CellKey>>& keys, std::int64_t unix_ms);
nlohmann::json json_of(const ApiKeyId& id, const CellKey& key);
std::unexpected<Error> unknown_tenant(const TenantId& tenant);

}  // namespace leasehold::cell
