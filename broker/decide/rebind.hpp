/// The limit on replacing revoked leases.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Takes a token of the tenant's limit if the acquire is a rebind; the last check before a grant,
/// so that a refused acquire costs none. Precondition: the tenant is known.
/// Errors: RebindRateLimited with the time before which a retry fails.
Result<std::optional<RebindToken>> admit_rebind(State& state, const wire::LeaseAcquire& acquire,
                                                TimePoint now);

/// Returns the token of a lease whose grant failed before its holder received it.
void give_back_rebind(State& state, LeaseRecord& record);

/// Notes that the lease was revoked, which makes the tenant's next acquire a rebind. A lease that
/// its worker lost before the holder received it returns its token. A holder that ends its
/// own acquire, by its exit or by a short TTL, has spent it: it could repeat that at will.
void note_rebindable(State& state, LeaseRecord& record, RevokeReason reason, TimePoint now);

}  // namespace leasehold
