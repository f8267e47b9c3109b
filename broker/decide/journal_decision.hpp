/// The last act of every decision: what it changed becomes rows, the rows find their place among
/// the effects, and the index of leases hears of it.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// One row for everything the decision touched, as it stands now; more numbers are reserved when
/// the decision used one beyond the mark. One transaction at most, and it stands
///   - before the first word that grants or fences, the first thing that is sent, and the answer;
///   - at the very end of a decision that lowered words and did none of that: a revocation waits
///     for no disk, nor do those who hear of it. What an operator did by it is a transaction of its
///     own then, synced when nothing else is left to do.
void journal_decision(Decision& decision);

}  // namespace leasehold
