/// Decides when the worker asks the broker for more extents for a pool of a lease, and how a failed
/// call is handled. Pure: time is an argument. For KV memory:
///
///   the broker lends no more, or the lease has ended ─► refused: a request that lacks blocks is
///                                                        preempted, or ends when it is alone
///   the broker reclaims memory and says when to retry,
///   or any other error, as while the broker restarts ─► requests wait, and the worker asks again
///
/// For swap each failure is a refusal: the preempted request is dropped, which always works, and
/// the worker asks again for later ones.
#pragma once

#include <map>
#include <utility>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "ipc/control/messages_common.hpp"

namespace leasehold {

inline constexpr Duration kGrowthRetryDelay = std::chrono::milliseconds(50);

/// True when the error means that the broker lends no more to this lease.
bool is_growth_refused(Errc code);

class GrowthCalls {
 public:
  using Pool = wire::MemoryPool;

  /// Begins a call. Returns false while a call is in flight for this pool of the lease, and for
  /// kGrowthRetryDelay after a failed call.
  bool begin(LeaseId lease, TimePoint now, Pool pool = Pool::Kv);
  /// Records the end of the call. Returns true when it counts as refused.
  bool end(LeaseId lease, const Result<void>& reply, TimePoint now, Pool pool = Pool::Kv);
  /// Removes a lease that has ended; the reply to a call in flight is then ignored.
  void forget(LeaseId lease);

 private:
  std::map<std::pair<LeaseId, Pool>, TimePoint> next_call_;  // kNever while a call is in flight
};

}  // namespace leasehold
