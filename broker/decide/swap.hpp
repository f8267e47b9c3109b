/// Growth in swap: host memory for the blocks of sequences that wait.
///
/// No quota counts it. The bound is a tenant's fair share (common/fair_shares.hpp): it takes more
/// only while it holds less than what is free. When a share is used up, the broker asks the other
/// leases for what they do not use.
#pragma once

#include "broker/decide/deciders.hpp"

namespace leasehold {

/// Answered once the worker has mapped the extents. Errors: PermissionDenied unless the lease's
/// worker calls; PoolExhausted without --swap-capacity, beyond the share, or when the worker has no
/// descriptors left.
CallResult grow_swap(Decision& decision, const Caller& caller, LeaseRecord& record,
                     std::uint32_t extents);

}  // namespace leasehold
