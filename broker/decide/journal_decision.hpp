/// The last step of every decision: turns its changes into journal rows, inserts them among the
/// effects, after the creation of the memory that they identify, and updates the lease index.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Writes one row per changed object, and reserves more ids if the decision used one above the
/// high-water mark. All rows are one transaction, placed
///   - before the first grant, Fenced word, sent message or answer;
///   - at the end of a decision that only revokes, because a revocation does not wait for the
///     disk. Its operator actions, and its audit records if there are many, are then a second
///     transaction that is written after all other work.
void journal_decision(Decision& decision);

}  // namespace leasehold
