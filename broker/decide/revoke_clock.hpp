/// Records the four clocks of a revocation (wire::RevokeClocks).
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Stores the value of the clock in the lease, unless it has one already, and adds it to the
/// broker's history if the lease did not end normally. Precondition: the lease is not Live.
void note_latency(Decision& decision, LeaseRecord& record, RevokeClock clock, Duration since_flip);

}  // namespace leasehold
