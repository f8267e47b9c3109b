/// Decides whether a lease has ended for its worker by time alone, and with which reason. The same
/// rule applies in a step and between steps.
#pragma once

#include "common/clock.hpp"
#include "ipc/segment/gate_set.hpp"
#include "worker/engine/running_requests.hpp"

namespace leasehold {

struct LeaseExpiry {
  TimePoint deadline;  ///< Zero: none.
  bool broker_disconnected = false;
};

/// A lease that expires while the broker is disconnected ends with BrokerLost, because no renewal
/// was possible. Returns None before the deadline.
inline LocalStop expiry_stop(const LeaseExpiry& lease, TimePoint now) {
  const bool over = lease.deadline.boottime_ns != 0 && lease.deadline <= now;
  if (!over) return LocalStop::None;
  return lease.broker_disconnected ? LocalStop::BrokerLost : LocalStop::LeaseExpired;
}

/// The reason for which the request must stop at `now`; None when it may continue.
inline LocalStop deadline_stop(const RunningRequest& running_request, LeaseExpiry lease,
                               TimePoint now) {
  const LocalStop by_lease = expiry_stop(lease, now);
  if (by_lease != LocalStop::None) return by_lease;
  if (running_request.deadline && *running_request.deadline <= now)
    return LocalStop::DeadlineExceeded;
  return LocalStop::None;
}

}  // namespace leasehold
