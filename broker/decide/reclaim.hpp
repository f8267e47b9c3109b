/// Reclaims extents from scavengers for a guaranteed tenant.
///
/// Whole leases are drained, one after another, until what is free or on its way suffices: each
/// time the newest lease of the scavenger that holds the most extents for its weight. At the end of
/// the grace they are revoked with `preempted_by_priority`. What becomes free is kept for the
/// tenant while it retries.
#pragma once

#include "broker/decide/deciders.hpp"
#include "broker/decide/reserves.hpp"

namespace leasehold {

/// Refuses a call that found no room, for the reason `why`. Memory that is kept for adoption and
/// could serve it is scrubbed, and the refusal then has `retry_after_ms`.
CallResult refuse_or_scrub(Decision& decision, const ExtentDemand& demand, const Error& why);

/// As refuse_or_scrub; if that frees nothing, also starts a reclaim. If the tenant's reserve covers
/// the demand and scavengers have the memory, the answer is PoolExhausted with `retry_after_ms`,
/// and a reclaim runs. Otherwise it is `why`, and nothing changes.
CallResult refuse_or_reclaim(Decision& decision, CallId call, const ExtentDemand& demand,
                             const Error& why);

}  // namespace leasehold
