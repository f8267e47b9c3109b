/// Returns device memory: it is held for the worker that mapped it, and released when that worker
/// exits.
#pragma once

#include <span>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Errors: PoolExhausted while no device agent is running.
Result<void> require_device(const State& state);

/// Clears extents that are Scrubbing and holds them for the lease's worker, which may still reach
/// them. Releases them instead if the worker has exited or never mapped them.
/// Precondition: a device is lent, and the extents are of the KV pool.
void return_to_device(Decision& decision, const LeaseRecord& record,
                      std::span<const ExtentId> extents);

/// Releases everything that was held for a worker that has exited.
void release_held(Decision& decision, AttachmentId worker);

}  // namespace leasehold
