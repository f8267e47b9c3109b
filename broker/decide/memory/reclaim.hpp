/// Reclaims extents from scavengers for a guaranteed tenant, and from scavenger leases for
/// guaranteed and standard tenants.
///
/// Whole leases are drained until the extents that are free or becoming free suffice. Each step
/// chooses the newest lease of the scavenger that holds the most extents relative to its weight. At
/// the end of the grace the chosen leases are revoked with `preempted_by_priority`. The extents
/// that become free are kept for the tenant while it retries.
#pragma once

#include "broker/decide/deciders.hpp"
#include "broker/decide/memory/reserves.hpp"

namespace leasehold {

/// Refuses a call that found no room, with the error `why`. If memory that is retained
/// could serve the demand, that memory is scrubbed, and the error has `retry_after_ms`.
CallResult refuse_or_scrub(Decision& decision, const ExtentDemand& demand, const Error& why);

/// Calls refuse_or_scrub. If that scrubs nothing, tries a reclaim. If the tenant's reserve covers
/// the demand and scavengers have enough memory, or scavenger leases alone have enough, starts the
/// reclaim and answers PoolExhausted with `retry_after_ms`. Otherwise answers `why`. If a
/// known tenant that is not a scavenger lacks memory for texts, asks workers to close adapters that
/// no request uses; a new lease gets `retry_after_ms` if there may be some.
CallResult refuse_or_reclaim(Decision& decision, CallId call, const ExtentDemand& demand,
                             const Error& why);

/// Refuses a demand beyond the tenant's quota. Scavenger leases of the tenant itself are drained
/// first: what its clients wait for goes before its batches, and the error has `retry_after_ms`.
CallResult refuse_or_end_own_scavengers(Decision& decision, const TenantId& tenant,
                                        const Error& why);

}  // namespace leasehold
