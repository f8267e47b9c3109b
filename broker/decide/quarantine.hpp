/// The end of a quarantine: what the second look at the memory leads to.
#pragma once

#include "broker/decide/decision.hpp"
#include "broker/decide/event.hpp"

namespace leasehold {

/// Into quarantine: an event and a warning say so, and the worker that wrote loses what it has.
void quarantine_extent(Decision& decision, ExtentId extent, const Quarantine& quarantine);
void quarantine_region(Decision& decision, WeightsRegion& region, const Quarantine& quarantine);

/// Precondition: the extent or region is Quarantined. Nothing happens unless somebody clears it.
void finish_release(Decision& decision, const ExtentsVerified::Entry& verified);
void finish_release(Decision& decision, WeightsRegion& region, std::uint64_t allocated_bytes);

}  // namespace leasehold
