/// Memory of a device on its way back: held for the worker that had it, released when that exited.
#pragma once

#include <span>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// PoolExhausted while the agent that allocates is gone.
Result<void> require_device(const State& state);

/// Extents that are Scrubbing: cleared and then held for the lease's worker, which may still reach
/// them; released where the worker has exited or never had them. Precondition: a device is lent.
void return_to_device(Decision& decision, const LeaseRecord& record,
                      std::span<const ExtentId> extents);

/// The worker has exited: what was held for it goes back to the device.
void release_held(Decision& decision, AttachmentId worker);

}  // namespace leasehold
