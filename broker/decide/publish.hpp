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

}  // namespace leasehold
