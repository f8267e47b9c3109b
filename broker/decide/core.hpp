/// event → decide → effects. The whole of the broker's judgement, as one pure function.
///
/// Lifetime: the state outlives the call; effects refer to nothing in it. Threads: one.
/// Errors: a call that cannot be granted is answered by a Reply effect; there is no other failure.
#pragma once

#include <optional>
#include <vector>

#include "broker/decide/decision.hpp"
#include "broker/decide/event.hpp"

namespace leasehold {

/// Deadlines that have passed are honoured before the event is looked at, but for BrokerStalled,
/// which says how they are to be judged. Afterwards the books are checked: bytes are conserved,
/// every extent belongs to a lease that is not closed. With more than some hundred leases and
/// extents one decision in 1024 is.
std::vector<Effect> decide(State& state, const Event& event, TimePoint now);

/// When a Tick is needed at the latest; nothing while no deadline runs. Pure.
std::optional<TimePoint> next_deadline(const State& state);

}  // namespace leasehold
