/// The views of adapters. Pure.
#pragma once

#include <vector>

#include "broker/books/state.hpp"

namespace leasehold {

/// One view more than the request's limit, if there are as many.
std::vector<wire::AdapterView> adapter_views(const State& state, const wire::AdapterList& request);

/// Memory of a lease of scope Adapter.
std::uint64_t bytes_of_adapter(const State& state, const LeaseRecord& record);
/// Counts the lease if it is one on an adapter's memory and not fenced.
void count_adapter(const State& state, const LeaseRecord& record, wire::StatusView& view);

wire::AdapterResolved resolved(const journal::AdapterRow& adapter);

/// The tenant's own adapters and the shared ones, ordered by name. Only the latter for an unknown
/// tenant.
wire::AdaptersVisible visible_adapters(const State& state, const TenantId& tenant);

}  // namespace leasehold
