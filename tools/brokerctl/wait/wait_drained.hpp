/// Waits for the end of a drain.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Polls until all `leases`, which the drain named, are Fenced, and reports progress. With a
/// drained worker it also waits for those of its leases that were revoked before. Returns the last
/// view of each lease, `leases` first. A lease that ended between two polls, and whose slot another
/// lease uses, is Fenced without a reason. Errors: TimedOut naming a lease that is not Fenced
/// `timeout_ms` after its revocation or the end of the grace, or when the user interrupts, which
/// does not end the drain; those of the call.
Result<std::vector<wire::LeaseView>> wait_until_drained(const std::vector<LeaseId>& leases,
                                                        const Drain& drain,
                                                        const Dependencies& dependencies);

/// Checks that each lease ended because its requests were done or its tenant ended it. Errors:
/// LeaseRevoked naming the first lease that ended otherwise; StaleGeneration naming a lease whose
/// end was not seen.
Result<void> check_all_ended_normally(std::span<const wire::LeaseView> leases);

/// Checks that the drained worker has no tenant lease. Errors: UnknownWorker (it is gone or lost),
/// IllegalTransition (it serves again), Draining (it has leases again); those of the call.
Result<void> check_worker_drained(const std::string& worker, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
