/// The limit on replacing revoked leases.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Takes a token of the tenant's limit if the acquire is a rebind; the last check before a grant,
/// so that a refused acquire costs none. Precondition: the tenant is known.
/// Errors: RebindRateLimited with the time before which a retry fails.
Result<void> admit_rebind(State& state, const wire::LeaseAcquire& acquire, TimePoint now);

}  // namespace leasehold
