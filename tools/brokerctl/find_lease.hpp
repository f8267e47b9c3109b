/// Finds one lease by its id.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Errors: UnknownLease for a lease that is not listed; StaleGeneration for one that has ended and
/// whose slot another lease uses; those of the call.
Result<wire::LeaseView> find_lease(LeaseId id, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
