/// Rebinds, which replace revoked leases: their limit, and whose turn it is when memory becomes
/// free.
///
/// Waiting rebinds come first, the oldest before newer ones. A place in the queue counts at most as
/// many extents as the replaced lease had, so a tenant cannot keep more from others than it had
/// before. Growth of live leases and acquires within a guaranteed reserve ignore the queue, so a
/// running text does not end because another one waits.
#pragma once

#include "broker/decide/decision.hpp"
#include "broker/decide/memory/reserves.hpp"

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

/// Checks that there is room for the demand and that it is its turn. Errors: those of require_room;
/// PoolExhausted while the free memory is kept for earlier rebinds.
Result<void> require_turn(State& state, const wire::LeaseAcquire& acquire,
                          const ExtentDemand& demand, TimePoint now);

/// Keeps a place for a rebind that was refused with PoolExhausted. The returned error then says
/// when to retry and how many rebinds come first. Any other error is returned unchanged.
Error keep_place(State& state, const wire::LeaseAcquire& acquire, const ExtentDemand& demand,
                 Error why, TimePoint now);

}  // namespace leasehold
