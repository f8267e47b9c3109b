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
/// `extent_size_bytes`: of the extents that the decision changed. After a restart of the machine
/// the state has no size, but the memory that was lost had one.
void journal_decision(Decision& decision, std::uint64_t extent_size_bytes);

}  // namespace leasehold
