/// Acquires that wait for a successor of their worker. The decision about `lease.acquire` itself is
/// declared in deciders.hpp and defined in acquire.cpp.
///
/// The worker of a lease died, and the lease's memory is retained (retention.hpp). The acquire that
/// replaces the lease finds no worker. It waits at most 2 s for one, so that the lease is granted
/// as soon as the worker is ready and the caller need not poll. At most one acquire waits for each
/// such lease; a second one is refused and may be retried.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Decides each waiting acquire once its worker is ready, the memory that it wanted to adopt has
/// been released, or it has waited 2 s. Call it at the end of each decision.
void settle_waiting_acquires(Decision& decision);

/// Makes `caller`, which repeated the acquire `first` on another connection of the same user, the
/// holder of the replaced lease. False if the call `first` does not wait.
bool reassign_waiting(Decision& decision, const Caller& caller, CallId first);

}  // namespace leasehold
