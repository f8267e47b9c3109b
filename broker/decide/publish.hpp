/// Published texts: leases of scope Shared, which belong to no tenant and have no deadline.
#pragma once

#include "broker/decide/deciders.hpp"

namespace leasehold {

/// Sends the text to the worker, which has mapped the first extents. `call` is answered after the
/// fill. Precondition: a Live shared lease that was not filled.
void start_fill(Decision& decision, LeaseRecord& record, CallId call);

/// Growth that the worker asks for during the fill. Errors: PermissionDenied afterwards and for
/// swap; QuotaBlocks, PoolExhausted.
CallResult grow_shared(Decision& decision, const Caller& caller, LeaseRecord& record,
                       const wire::LeaseGrow& grow);

inline constexpr std::size_t kMaxLostTexts = 64;  ///< Of at most 128 KiB each.

/// Keeps the text of a lease that ends with its worker. Precondition: the lease is Revoked.
void keep_lost_text(State& state, const LeaseRecord& record);

/// Publishes lost texts again where a worker of the same name and model is ready and has room. Runs
/// after each event. A text that cannot be published again is given up with a warning.
void publish_lost_texts(Decision& decision);

}  // namespace leasehold
