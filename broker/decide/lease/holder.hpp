/// Functions shared by the deciders for the calls of holders.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The error for a lease that the caller does not hold. It is the same if another process holds the
/// lease, if it has ended, or if it was never granted, so that a caller learns nothing about other
/// tenants by trying ids.
std::unexpected<Error> lease_not_held_error(LeaseId lease);

/// Finds a tenant lease that the caller's connection holds. Errors: UnknownLease (see
/// `lease_not_held_error`).
Result<LeaseRecord*> find_held(State& state, const Caller& caller, LeaseId lease);

}  // namespace leasehold
