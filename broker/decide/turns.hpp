/// Decides whose turn it is when memory becomes free: waiting rebinds come first, the oldest before
/// newer ones.
///
/// A place in the queue counts at most as many extents as the replaced lease had, so a tenant
/// cannot keep more from others than it had before. Growth of live leases and acquires within a
/// guaranteed reserve ignore the queue, so a running text does not end because another one waits.
#pragma once

#include "broker/decide/decision.hpp"
#include "broker/decide/reserves.hpp"

namespace leasehold {

/// Checks that there is room for the demand and that it is its turn. Errors: those of require_room;
/// PoolExhausted while the free memory is kept for earlier rebinds.
Result<void> require_turn(State& state, const wire::LeaseAcquire& acquire,
                          const ExtentDemand& demand, TimePoint now);

/// Keeps a place for a rebind that was refused with PoolExhausted. The returned error then says
/// when to retry and how many rebinds come first. Any other error is returned unchanged.
Error keep_place(State& state, const wire::LeaseAcquire& acquire, const ExtentDemand& demand,
                 Error why, TimePoint now);

}  // namespace leasehold
