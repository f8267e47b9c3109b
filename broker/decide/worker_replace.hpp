/// `brokerctl worker replace`: the tenants of a worker move to another one that serves the same
/// weights.
///
///   old   serves ─worker.replace─► its holders move their leases ─none is left─► may be stopped
///            ▲                        │
///            └── new one ended, undrained, broker restarted
///
/// The replacement is only a mark on the old worker, which drains no lease; when the mark is
/// dropped, the old worker serves as before. A broker restart drops the mark, because it also loses
/// the memory that is being handed over.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The worker to which `lease.replace` with mode Failover moves the lease. Errors:
/// IllegalTransition if the lease's worker is not being replaced or its texts cannot continue on
/// the new one; those of choose_worker.
Result<Worker*> successor_for(State& state, const LeaseRecord& old, bool any_arithmetic);

/// The worker for an acquire that names `wanted`: the successor, if the named worker is being
/// replaced; otherwise `wanted`.
std::optional<std::string> current_name(State& state, const std::optional<std::string>& wanted);

/// Ends the replacement of this worker, if there is one. The worker serves as before.
void drop_replacement(Decision& decision, Worker& worker);

/// Revokes the tenant leases that are left on old workers whose grace has ended.
void expire_replacements(Decision& decision);

/// Call it after each decision. Drops replacements whose new worker no longer serves, and reports
/// each old worker that has no tenant lease left.
void settle_replacements(Decision& decision);

}  // namespace leasehold
