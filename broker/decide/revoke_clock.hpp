/// The four clocks of a revocation.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Stores the clock of the lease's end, unless the lease has it already, and adds it to the
/// broker's history if the end was a revocation. Precondition: the lease is not Live.
void note_latency(Decision& decision, LeaseRecord& record, RevokeClock clock, Duration since_flip);

}  // namespace leasehold
