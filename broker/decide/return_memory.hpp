/// Frees the memory of leases that have ended.
#pragma once

#include <span>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// These add one effect for each pool that has extents in the list. Device memory is not punched.
/// Precondition: the extents exist.
void punch_extents(Decision& decision, std::span<const ExtentId> extents);
void verify_extents(Decision& decision, std::span<const ExtentId> extents,
                    bool close_anyway = false);

/// Verifies and frees the memory of a fenced lease. The caller knows that the worker mapped none of
/// it, has unmapped it, or has exited. Precondition: Fenced.
void collect_memory(Decision& decision, LeaseRecord& record);

/// Scrubs extents of a live lease that the worker has unmapped or never mapped.
void scrub_returned(Decision& decision, LeaseRecord& record, std::span<const ExtentId> extents);

/// Frees a weights region. Precondition: it has no users.
void close_region(Decision& decision, const WeightsRegion& region);

/// Closes the lease if all its memory has returned.
void close_if_returned(Decision& decision, LeaseRecord& record);

}  // namespace leasehold
