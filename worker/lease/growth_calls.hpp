/// Decides when the worker asks the broker for more extents of a lease, and what a failed call
/// means. Pure: time is an argument.
///
///   the broker lends no more, or the lease has ended ─► refused: a request that lacks blocks is
///                                                        preempted, or ends when it is alone
///   the broker reclaims memory and says when to retry,
///   or any other error, as while the broker restarts ─► they wait, and the worker asks again
#pragma once

#include <map>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

inline constexpr Duration kGrowthRetryDelay = std::chrono::milliseconds(50);

/// True when the broker decided that it lends no more to this lease.
bool is_growth_refused(Errc code);

class GrowthCalls {
 public:
  /// Begins a call. False while one is in flight for the lease, and for kGrowthRetryDelay after a
  /// call that failed.
  bool begin(LeaseId lease, TimePoint now);
  /// The call ended. True when the broker refused.
  bool end(LeaseId lease, const Result<void>& reply, TimePoint now);
  /// The lease has ended; a call in flight changes nothing.
  void forget(LeaseId lease) { next_call_.erase(lease); }

 private:
  std::map<LeaseId, TimePoint> next_call_;  // kNever while a call is in flight
};

}  // namespace leasehold
