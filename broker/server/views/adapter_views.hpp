/// The views of adapters. Pure.
#pragma once

#include <vector>

#include "broker/books/state.hpp"

namespace leasehold {

/// One view more than the request's limit, if there are as many.
std::vector<wire::AdapterView> adapter_views(const State& state, const wire::AdapterList& request);

wire::AdapterResolved resolved(const journal::AdapterRow& adapter);

/// The tenant's own adapters and the shared ones, ordered by name. Only the latter for an unknown
/// tenant.
wire::AdaptersVisible visible_adapters(const State& state, const TenantId& tenant);

}  // namespace leasehold
