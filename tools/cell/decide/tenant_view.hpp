/// What was read from etcd about one tenant, in two reads. Writers compare its revisions. Pure.
#pragma once

#include <set>

#include "common/result.hpp"
#include "ipc/etcd/etcd_types.hpp"
#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cell/decide/ledger.hpp"

namespace leasehold::cell {

struct TenantView {
  Ledger ledger;
  etcd::Revision ledger_modified;  ///< Zero: there is none yet.
  CellPolicy policy;               ///< Limits of zero for a tenant that the cell does not know.
  etcd::Revision policy_modified;  ///< Zero: the cell does not know the tenant.
  Incarnations members;            ///< The incarnations of hosts that have a part.
  etcd::Revision mail;             ///< Revision of the mail for the reader. Zero: there is none.
};

/// Reads ledger and policy.
etcd::Transaction ledger_read(const CellKeys& keys, const TenantId& tenant);
/// Errors: BadRequest for a value that is wrong, and for a part that no host can have written; then
/// nothing may be granted.
Result<TenantView> view_of(const etcd::TransactionReply& reply);

/// The hosts that have a part.
std::set<HostName> hosts_of(const TenantView& view);

/// Reads the keys of the hosts that have a part. Empty without such hosts.
etcd::Transaction members_read(const CellKeys& keys, const TenantView& view);
/// Reads the ledger, the policy, the host's mail, and the hosts of the last view. Most often these
/// are all that have a part.
etcd::Transaction part_read(const CellKeys& keys, const TenantId& tenant, const HostName& host,
                            const TenantView& last);
Incarnations members_in(const CellKeys& keys, const etcd::TransactionReply& reply);

}  // namespace leasehold::cell
