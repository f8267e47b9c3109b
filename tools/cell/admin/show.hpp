/// What a cell looks like: the commands of `brokerctl cell` that change nothing.
///
/// A record that is wrong is a note that names its key; the others are shown. Errors: those of
/// etcd.
#pragma once

#include "tools/cell/admin/calls.hpp"

namespace leasehold::cell {

/// The terms of the cell, and how many hosts and tenants it has.
Result<Answer> show_status(const Calls& calls);
Result<Answer> show_hosts(const Calls& calls);
Result<Answer> show_tenants(const Calls& calls);
/// All keys, or those of one tenant. Errors: UnknownTenant.
Result<Answer> show_keys(const Calls& calls, const std::optional<TenantId>& tenant = {});
/// The parts of one tenant. Errors: UnknownTenant; BadRequest for a ledger that is wrong.
Result<Answer> show_ledger(const Calls& calls, const TenantId& tenant);
/// Checks every record of the cell and the law for each tenant. Exit code 1 if one is wrong.
Result<Answer> examine(const Calls& calls);

}  // namespace leasehold::cell
