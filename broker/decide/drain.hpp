/// Drains a lease; operators and reclaims call this.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

struct Drain {
  TimePoint until;
  RevokeReason reason = RevokeReason::DrainDeadline;  ///< Reason of the revocation at `until`.
};

/// Makes a live lease accept no new requests; it is revoked at the deadline. If both a reclaim and
/// another drain apply, the earlier deadline counts. An acquire in flight is answered with
/// `refusal`, because the lease could not be used.
void start_drain(Decision& decision, LeaseRecord& record, const Drain& drain, const Error& refusal);

}  // namespace leasehold
