/// The limit on replacing revoked leases.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Takes a token of the tenant's limit if the acquire is a rebind. It must be the last check before
/// a grant, so that a refused acquire costs no token. Precondition: the tenant is known. Errors:
/// RebindRateLimited with `retry_after_ms`.
Result<std::optional<RebindToken>> admit_rebind(State& state, const wire::LeaseAcquire& acquire,
                                                TimePoint now);

/// Returns the token of a lease whose grant failed before its holder received it.
void give_back_rebind(State& state, LeaseRecord& record);

/// Notes that the lease was revoked, which makes the tenant's next acquire a rebind. If the lease
/// was lost with its worker before the holder received it, the token is returned instead. A holder
/// that ends its own acquire, by its exit or a short TTL, does not get the token back, because it
/// could repeat that without limit.
void note_rebindable(State& state, LeaseRecord& record, RevokeReason reason, TimePoint now);

}  // namespace leasehold
