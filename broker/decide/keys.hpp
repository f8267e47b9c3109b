/// API keys: what acquiring and removing a tenant need of them.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The tenant for which the caller acquires: that of its API key, with any user, or the
/// named one where its policy permits the caller's user.
/// Errors: BadToken, UnknownTenant.
Result<const Tenant*> tenant_of_acquire(const State& state, const Caller& caller,
                                        const wire::LeaseAcquire& acquire);

/// The key that the acquire shows, verified or not; empty without one. Pure.
ApiKeyId key_of(const wire::LeaseAcquire& acquire);

/// Removes a key that could not be written, revokes its leases, and records that it was not
/// created. Returns the answer to its `key.create`.
std::unexpected<Error> refuse_unwritten_key(Decision& decision, const ApiKeys::Unwritten& key,
                                            const Error& why);

/// Forgets the keys of a removed tenant.
void forget_keys_of(Decision& decision, const TenantId& tenant);

}  // namespace leasehold
