/// When a lease is over for its worker by time alone, and whose fault that is: the one rule, for
/// what runs and for what is between two steps.
#pragma once

#include "common/clock.hpp"
#include "ipc/segment/gate_set.hpp"

namespace leasehold {

struct LeaseTime {
  TimePoint deadline;  ///< Zero: none.
  bool broker_disconnected = false;
};

/// A lease that runs out while nobody can renew it ends for the broker's sake. None before that.
inline LocalStop lease_stop(const LeaseTime& lease, TimePoint now) {
  const bool over = lease.deadline.boottime_ns != 0 && lease.deadline <= now;
  if (!over) return LocalStop::None;
  return lease.broker_disconnected ? LocalStop::BrokerLost : LocalStop::LeaseExpired;
}

}  // namespace leasehold
