/// How much free memory the broker clears before it is granted.
///
/// A text that moves to another lease waits until the new memory is mapped. Clearing takes time
/// for each extent, so without this the wait grows with the text. A replacement takes as many
/// extents as the old lease, and so that many are cleared: enough for one move of the largest lease
/// that lives. Leases that move together share it.
///
/// A cleared object is new, belongs to no extent yet, and has never left the broker. Its bytes are
/// those of Free extents, so the memory in use stays within the capacity. Returned memory is still
/// punched, verified and closed; it is never cleared for another grant.
///
/// Pure.
#pragma once

#include "broker/books/state.hpp"

namespace leasehold {

/// Extents to keep cleared: as many as the largest live lease of a tenant has KV blocks for, at
/// most all free ones, and at most `limit_bytes`. 0 for a device, whose memory its agent clears.
std::uint32_t extents_to_clear(const State& state, std::uint64_t limit_bytes);

}  // namespace leasehold
