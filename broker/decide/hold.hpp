/// What the calls of a holder share.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The answer about a lease that the caller does not hold. It is the same whether another holder
/// has it, it has ended or it was never granted, so that ids tell nothing about other tenants.
std::unexpected<Error> not_held(LeaseId lease);

/// The tenant's lease that this connection holds. Errors: UnknownLease (see `not_held`).
Result<LeaseRecord*> find_held(State& state, const Caller& caller, LeaseId lease);

}  // namespace leasehold
