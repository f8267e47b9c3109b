/// Growth in swap: host memory for the blocks of waiting sequences.
///
/// Swap is not charged to a quota. It is limited by fair shares (common/fair_shares.hpp): a tenant
/// may take more only while it holds less than what is free. When a tenant's share is used up, the
/// broker asks all other leases for extents that they do not use.
#pragma once

#include "broker/decide/deciders.hpp"

namespace leasehold {

/// Takes swap extents for the lease; the call is answered once the worker has mapped them. Errors:
/// PermissionDenied unless the lease's worker calls; PoolExhausted without --swap-capacity, beyond
/// the share, or when the worker has no descriptors left.
CallResult grow_swap(Decision& decision, const Caller& caller, LeaseRecord& record,
                     std::uint32_t extents);

}  // namespace leasehold
