/// Functions about API keys that other deciders need.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The tenant for which the caller acquires. With an API key: the key's tenant, for any user.
/// Otherwise: the named tenant, if its policy permits the caller's user. Errors: BadToken,
/// UnknownTenant.
Result<const Tenant*> tenant_of_acquire(const Decision& decision, const Caller& caller,
                                        const wire::LeaseAcquire& acquire);

/// The id of the API key in the acquire, which need not be valid; empty if there is none. Pure.
ApiKeyId key_of(const wire::LeaseAcquire& acquire);

/// Removes a key that could not be written to the journal, revokes its leases, and records that the
/// key was not created. Returns the answer to the `key.create` call.
std::unexpected<Error> refuse_unwritten_key(Decision& decision, const ApiKeys::Unwritten& key,
                                            const Error& why);

/// Ends the leases of keys that have expired.
void expire_keys(Decision& decision);

/// Removes the keys of a removed tenant.
void forget_keys_of(Decision& decision, const TenantId& tenant);

}  // namespace leasehold
