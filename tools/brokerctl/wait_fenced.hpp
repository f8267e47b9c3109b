/// Waiting for a revocation to be over.
#pragma once

#include <vector>

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Asks until every one of `leases` is Fenced and, a little longer, until its memory can be leased
/// again, because that is the last of the four clocks. A lease whose memory stays away
/// (quarantined, or published weights) is answered with that clock unknown.
/// Errors: TimedOut naming the lease that is not fenced; UnknownLease when the broker no longer
/// lists one; those of the call.
Result<std::vector<wire::LeaseView>> wait_until_fenced(const std::vector<LeaseId>& leases,
                                                       Duration timeout,
                                                       const Dependencies& dependencies);

/// What was waited for, but for memory that does not come back: StillWritable naming the first
/// lease that has some in quarantine.
Result<void> check_none_quarantined(const std::vector<wire::LeaseView>& leases);

}  // namespace leasehold::brokerctl
