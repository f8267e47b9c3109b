/// What the calls of a holder share.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The tenant's lease that this connection holds. Errors: UnknownLease, StaleGeneration;
/// PermissionDenied if another connection holds it.
Result<LeaseRecord*> find_held(State& state, const Caller& caller, LeaseId lease);

}  // namespace leasehold
