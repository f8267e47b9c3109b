/// Decides how much free memory the broker clears ahead of grants.
///
/// A text that moves to another lease waits until the new memory is mapped. Clearing takes time for
/// each extent, so without cleared memory the wait would grow with the length of the text. A
/// replacement takes as many extents as the old lease. The broker therefore keeps enough extents
/// cleared for one replacement of the largest live lease. Leases that move at the same time share
/// them.
///
/// A cleared object is new, belongs to no extent yet, and has never left the broker. At most as
/// many objects are cleared as extents are Free, so the memory in use stays within the capacity.
/// Returned memory is still punched, verified and closed; it is never cleared for another grant.
///
/// Pure.
#pragma once

#include "broker/books/state.hpp"

namespace leasehold {

/// Number of extents to keep cleared: as many as the charged KV blocks of the largest live tenant
/// lease need, at most all free extents, and at most `limit_bytes`. 0 for a device, whose memory
/// the agent clears.
std::uint32_t extents_to_clear(const State& state, std::uint64_t limit_bytes);

}  // namespace leasehold
