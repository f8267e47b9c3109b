/// Sends each worker its part of the quotas of its tenants.
#pragma once

#include <set>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The tenants whose quotas on workers may differ after this decision: it changed the policy, a
/// lease of the tenant or a worker that has one, or a worker reported usage.
std::set<TenantId> tenants_touched(const Decision& decision);

/// Sends each worker of the tenants its changed quota, before any grant of this decision.
/// Precondition: the lease index is up to date.
void settle_quotas(Decision& decision, const std::set<TenantId>& tenants);

/// Sends quotas again whose tokens of the day end with it. Call it when the day may have changed.
void begin_day(Decision& decision);

/// Withdraws the quotas of a tenant from its workers. Precondition: none of its leases is Live.
void withdraw_quotas(Decision& decision, Tenant& tenant);

}  // namespace leasehold
