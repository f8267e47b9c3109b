/// The four clocks of a revocation.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Stores the clock of the lease's revocation and adds it to the broker's history, unless the lease
/// has it already. Precondition: the lease is not Live.
void note_latency(Decision& decision, LeaseRecord& record, RevokeClock clock, Duration since_flip);

}  // namespace leasehold
