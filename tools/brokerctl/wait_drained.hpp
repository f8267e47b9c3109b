/// Waits for the end of a drain.
#pragma once

#include <vector>

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Polls until all `leases` are Fenced, and reports progress. The grace of the drain bounds the
/// wait. Returns the leases that the broker still lists: another lease may use the slot by now.
/// Errors: TimedOut when the user interrupts, which does not end the drain; those of the call.
Result<std::vector<wire::LeaseView>> wait_until_drained(const std::vector<LeaseId>& leases,
                                                        const Dependencies& dependencies);

/// Errors: LeaseRevoked naming the first lease that was revoked when the grace ended.
Result<void> check_none_cut_off(const std::vector<wire::LeaseView>& leases);

}  // namespace leasehold::brokerctl
