/// Acquires that wait for a successor of their worker.
///
/// The worker of a lease died, and the lease's memory is kept (adopt.hpp). The acquire that
/// replaces the lease finds no worker. It waits for one at most 2 s, so that the lease is granted
/// when the worker is ready and no caller asks again and again. Each kept lease has one such
/// acquire; a second one is refused and may be repeated.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Ends the waits of acquires: a worker became ready, the memory is not kept any more, or 2 s have
/// passed. To be called at the end of each decision.
void settle_waiting_acquires(Decision& decision);

/// A repeated acquire on another connection of the same user makes that caller the holder of the
/// kept lease. False if the call `first` does not wait.
bool reassign_waiting(Decision& decision, const Caller& caller, CallId first);

}  // namespace leasehold
