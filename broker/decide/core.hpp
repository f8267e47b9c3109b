/// event → decide → effects: every decision of the broker is one pure function. It calls the
/// decider of the event; deciders.hpp names the file of each.
///
/// Lifetime: effects hold no reference into the state. Threads: one.
/// Errors: a call that cannot be granted is answered by a Reply effect; there is no other failure.
#pragma once

#include <optional>
#include <vector>

#include "broker/decide/decision.hpp"
#include "broker/decide/event.hpp"

namespace leasehold {

/// Applies passed deadlines first, then the event. BrokerStalled comes before the deadlines because
/// it moves them. Afterwards checks the invariants: bytes are conserved, and every extent in use
/// belongs to an open lease. With more than 512 leases and extents, only one decision in 1024 is
/// checked.
std::vector<Effect> decide(State& state, const Event& event, TimePoint now);

/// The latest time for the next Tick; nothing if no deadline is set. Pure.
std::optional<TimePoint> next_deadline(const State& state);

/// True while a timeout runs that BrokerStalled would restart. The broker's loop must then wake
/// regularly, so that it can detect a stall. Pure.
bool awaits_timeout(const State& state);

}  // namespace leasehold
