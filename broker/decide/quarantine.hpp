/// Quarantines memory whose teardown is unproven, and releases it when an operator asks.
#pragma once

#include "broker/decide/decision.hpp"
#include "broker/decide/event.hpp"

namespace leasehold {

/// Quarantines the memory. If the worker wrote to it after the fence, all leases of that worker are
/// revoked, and it gets no more leases.
void quarantine_extent(Decision& decision, ExtentId extent, const Quarantine& quarantine);
void quarantine_region(Decision& decision, WeightsRegion& region, const Quarantine& quarantine);

/// Finishes an operator's release after the memory was punched and verified once more; does nothing
/// if none is pending. Precondition: the memory is Quarantined.
void finish_release(Decision& decision, const ExtentsVerified::Entry& verified);
void finish_release(Decision& decision, WeightsRegion& region, std::uint64_t allocated_bytes);

}  // namespace leasehold
