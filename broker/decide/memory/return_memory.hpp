/// Frees the memory of leases that have ended, holds it for its worker, or quarantines it.
#pragma once

#include <span>

#include "broker/decide/decision.hpp"
#include "broker/decide/event.hpp"

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

/// What the verification of an extent without allocated bytes proves. An extent whose descriptor
/// the broker has lost reports none.
MemoryFate fate_of_empty(const State& state, ExtentId extent);

/// Frees a weights region. Precondition: it has no users.
void close_region(Decision& decision, const WeightsRegion& region);

/// Closes the lease if all its memory has returned.
void close_if_returned(Decision& decision, LeaseRecord& record);

// device.cpp

/// Errors: PoolExhausted while no device agent is running.
Result<void> require_device(const State& state);

/// Clears extents that are Scrubbing and holds them for the lease's worker, which may still reach
/// them. Releases them instead if the worker has exited or never mapped them.
/// Precondition: a device is lent, and the extents are of the KV pool.
void return_to_device(Decision& decision, const LeaseRecord& record,
                      std::span<const ExtentId> extents);

/// Releases everything that was held for a worker that has exited.
void release_held(Decision& decision, AttachmentId worker);

// quarantine.cpp

/// Quarantines the memory. If the worker wrote to it after the fence, all leases of that worker are
/// revoked, and it gets no more leases.
void quarantine_extent(Decision& decision, ExtentId extent, const Quarantine& quarantine);
void quarantine_region(Decision& decision, WeightsRegion& region, const Quarantine& quarantine);

/// Finishes an operator's release after the memory was punched and verified once more; does nothing
/// if none is pending. Precondition: the memory is Quarantined.
void finish_release(Decision& decision, const ExtentsVerified::Entry& verified);
void finish_release(Decision& decision, WeightsRegion& region, std::uint64_t allocated_bytes);

}  // namespace leasehold
