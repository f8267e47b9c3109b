/// Adapters: functions that other deciders need.
#pragma once

#include "broker/decide/deciders.hpp"

namespace leasehold {

/// Removes the adapters of a removed tenant, and revokes their leases (`policy_changed`).
void forget_adapters_of(Decision& decision, const TenantId& tenant);

/// UnknownAdapter, for operators.
std::unexpected<Error> not_registered(const AdapterName& adapter);

/// Returns the live leases of all versions of the adapter and of texts published under it. If
/// `owner` is given, leases and adapters of other tenants count as absent. Errors: UnknownAdapter
/// if neither the adapter nor a lease of a removed one is found.
Result<std::vector<LeaseId>> leases_of_adapter(State& state, const AdapterName& adapter,
                                               const std::optional<TenantId>& owner);

/// Refuses a worker that serves a model under the name of a registered adapter: its model would
/// answer requests for the adapter. Errors: BadRequest.
Result<void> require_no_adapter(const State& state, const wire::WorkerReady& ready);

/// Notifies the worker, which forgets what it has resolved, because it may have missed a change.
void notify_of_adapters(Decision& decision, const Worker& worker);

}  // namespace leasehold
