/// The leases that an operator's call names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The named lease, or the live leases of the named tenant, which may be none. Errors: BadRequest
/// unless exactly one of the two is given, UnknownLease, StaleGeneration, LeaseFenced,
/// UnknownTenant.
Result<std::vector<LeaseId>> leases_named(State& state, const std::optional<LeaseId>& lease,
                                          const std::optional<TenantId>& tenant);

/// "lease:17.4" or "tenant:acme", as in operator actions. Precondition: one of them is set.
std::string object_name(const std::optional<LeaseId>& lease, const std::optional<TenantId>& tenant);

}  // namespace leasehold
