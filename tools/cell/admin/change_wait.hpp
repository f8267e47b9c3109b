/// Waits until a change of a tenant holds on every host. Internal to the commands.
#pragma once

#include "tools/cell/admin/calls.hpp"
#include "tools/cell/decide/tenant_view.hpp"

namespace leasehold::cell {

/// A change that etcd has executed.
struct TenantChange {
  TenantId tenant;
  TenantView before;  ///< What the change compared.
  etcd::Revision changed;
};

/// Adds a line for each host to the answer. Hosts that are silent for so long that they have
/// stopped are expired on the way. Errors: TimedOut after `timeout` or an interrupt, with the
/// lines; those of etcd that a retry cannot change.
Result<void> wait_for_hosts(const Calls& calls, const TenantChange& change, Duration timeout,
                            Answer& answer);

}  // namespace leasehold::cell
