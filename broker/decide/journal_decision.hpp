/// The last step of every decision: turns its changes into journal rows, inserts them among the
/// effects, and updates the lease index.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Writes one row per changed object, and reserves more ids if the decision used one above the
/// mark. All rows are one transaction, placed
///   - before the first grant, Fenced word, sent message or answer;
///   - at the end of a decision that only revokes: a revocation does not wait for the disk. Its
///     operator actions, and the audit records of many leases, are then a second transaction,
///     written after all other work.
void journal_decision(Decision& decision);

}  // namespace leasehold
