/// A change of a tenant over the whole cell. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/cell/decide/revoked_key.hpp"
#include "tools/cell/decide/tenant_view.hpp"

namespace leasehold::cell {

/// Writes the policy and mails every host that has a part. It compares the ledger that `view` has:
/// a host that takes a part at the same time either is mailed or sees the new policy.
etcd::Transaction change_of(const CellKeys& keys, const TenantId& tenant, const CellPolicy& policy,
                            const TenantView& view);

/// Writes an API key of the tenant in the same way: the policy is written again, so that a host
/// applies the change before it renews `as_of`.
etcd::Transaction key_change_of(const CellKeys& keys, const CellKey& key, const TenantView& view);

/// Deletes an API key of the tenant in the same way, and writes a RevokedKey.
etcd::Transaction revocation_of(const CellKeys& keys, const CellKey& key, const TenantView& view,
                                std::int64_t unix_ms);

}  // namespace leasehold::cell
