/// Sends workers what tenants may use on them.
#pragma once

#include <set>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The tenants whose quotas may differ after this decision: their policy, a lease, a worker with
/// leases of theirs, or a report of usage changed.
std::set<TenantId> tenants_touched(const Decision& decision);

/// Sends each worker of the tenants its changed quota, before any grant of this decision.
/// Precondition: the lease index is up to date.
void settle_quotas(Decision& decision, const std::set<TenantId>& tenants);

/// Withdraws the quotas of a tenant from its workers. Precondition: none of its leases is Live.
void withdraw_quotas(Decision& decision, Tenant& tenant);

}  // namespace leasehold
