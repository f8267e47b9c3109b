/// Waits for the end of a revocation.
#pragma once

#include <vector>

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Polls until all `leases` are Fenced, then up to 500 ms more until their memory is reusable,
/// which is the last of the four clocks. That clock stays unknown (-1) for memory that is
/// quarantined or holds published weights. Returns the leases in the given order. Errors: TimedOut
/// naming a lease that is not fenced after `timeout`, or when the user interrupts; UnknownLease
/// when the broker no longer lists a lease; those of the call.
Result<std::vector<wire::LeaseView>> wait_until_fenced(const std::vector<LeaseId>& leases,
                                                       Duration timeout,
                                                       const Dependencies& dependencies);

/// Errors: StillWritable naming the first lease with quarantined memory.
Result<void> check_none_quarantined(const std::vector<wire::LeaseView>& leases);

}  // namespace leasehold::brokerctl
