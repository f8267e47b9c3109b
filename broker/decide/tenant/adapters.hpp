/// Adapters: functions that other deciders need.
#pragma once

#include "broker/decide/deciders.hpp"

namespace leasehold {

/// Removes the adapters of a removed tenant, and revokes their leases (`policy_changed`).
void forget_adapters_of(Decision& decision, const TenantId& tenant);

/// UnknownAdapter, for operators.
std::unexpected<Error> not_registered(const AdapterName& adapter);

/// The live leases of all versions of the adapter and of texts published under it; with a tenant,
/// only if it is the owner. Errors: UnknownAdapter if there is no such adapter and no lease of a
/// removed one.
Result<std::vector<LeaseId>> leases_of_adapter(State& state, const AdapterName& adapter,
                                               const std::optional<TenantId>& owner);

/// Refuses a worker that serves a model under the name of a registered adapter: its model would
/// answer requests for the adapter. Errors: BadRequest.
Result<void> require_no_adapter(const State& state, const wire::WorkerReady& ready);

/// Notifies the worker, which forgets what it has resolved, because it may have missed a change.
void notify_of_adapters(Decision& decision, const Worker& worker);

}  // namespace leasehold
