/// Drains a lease; operators and reclaims call this.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

struct Drain {
  TimePoint until;
  RevokeReason reason = RevokeReason::DrainDeadline;  ///< If the lease has not ended by then.
};

/// A live lease takes no new request, and is revoked at the deadline. Of a reclaim and another
/// drain, the earlier deadline applies. An acquire in flight is answered with `refusal`: no request
/// of its lease would be accepted.
void start_drain(Decision& decision, LeaseRecord& record, const Drain& drain, const Error& refusal);

}  // namespace leasehold
