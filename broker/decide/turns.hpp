/// Whose turn it is when memory comes back: rebinds that wait, the oldest first.
///
/// A place counts no more extents than the replaced lease had, so it keeps from others only what
/// was its tenant's. Growth of live leases and acquires within a guaranteed reserve take no notice
/// of places: a text that runs does not end for one that waits.
#pragma once

#include "broker/decide/decision.hpp"
#include "broker/decide/reserves.hpp"

namespace leasehold {

/// Errors: those of require_room; PoolExhausted while the memory is kept for rebinds that came
/// before.
Result<void> require_turn(State& state, const wire::LeaseAcquire& acquire,
                          const ExtentDemand& demand, TimePoint now);

/// Keeps a place for a rebind that was refused with PoolExhausted. The error says when to ask again
/// then, and how many rebinds wait before it; otherwise it is returned as it is.
Error keep_place(State& state, const wire::LeaseAcquire& acquire, const ExtentDemand& demand,
                 Error why, TimePoint now);

}  // namespace leasehold
