/// `brokerctl worker replace`: the tenants of a worker move to another one that serves the same
/// weights.
///
///   old   serves ─worker.replace─► its holders move their leases ─none is left─► may be stopped
///            ▲                        │
///            └── new one ended, undrained, broker restarted
///
/// A mark on the old worker. No lease drains by it, so without the mark the old worker serves as
/// before. A broker restart drops it, as it drops the memory that moves.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The worker that `lease.replace` with mode Failover moves the lease to. Errors: IllegalTransition
/// where the lease's worker is not replaced, or the arithmetic differs; those of choose_worker.
Result<Worker*> successor_for(State& state, const LeaseRecord& old, bool any_arithmetic);

/// The name of the worker for an acquire that names `wanted`.
std::optional<std::string> current_name(State& state, const std::optional<std::string>& wanted);

/// Ends the mark, if there is one. The worker serves again.
void drop_replacement(Decision& decision, Worker& worker);

/// Revokes what is left at the end of each grace.
void expire_replacements(Decision& decision);

/// After each decision: ends the marks whose new worker has ended, and reports old workers without
/// a lease of a tenant.
void settle_replacements(Decision& decision);

}  // namespace leasehold
