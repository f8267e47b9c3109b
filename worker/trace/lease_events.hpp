/// The events of a span that concern leases. Pure.
#pragma once

#include <string>

#include "common/ids.hpp"
#include "worker/trace/span.hpp"

namespace leasehold {

/// A lease ended under the request. `reason` and `scope` as in wire::RequestCompleted.
SpanEvent lease_revoked_event(LeaseId lease, std::string reason, std::string scope, TimePoint at);

/// The request continues under another lease.
SpanEvent lease_rebound_event(LeaseId old_lease, LeaseId new_lease, std::uint32_t emitted_tokens,
                              TimePoint at);

}  // namespace leasehold
