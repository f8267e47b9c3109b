/// Tenants: who may hold how much.
///
/// Pure. Blocks are charged per lease, from the grant until the lease is fenced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "broker/books/ids.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

struct Tenant {
  wire::TenantAdmit policy;
};

class Tenants {
 public:
  /// Creates or changes. A quota lowered under use admits nothing until the tenant is under it and
  /// revokes nothing. Errors: BadRequest naming the value out of range.
  Result<void> admit(const wire::TenantAdmit& policy);

  /// UnknownTenant; PermissionDenied when the policy names another user.
  Result<const Tenant*> find_for(const TenantId& tenant, std::uint32_t uid) const;

  const Tenant* find(const TenantId& tenant) const;
  const std::map<TenantId, Tenant>& all() const { return tenants_; }

 private:
  std::map<TenantId, Tenant> tenants_;
};

/// What an acquire or a grow wants, and what stands against it.
struct BlockDemand {
  std::uint32_t max_blocks = 0;      ///< Of the policy.
  std::uint32_t charged_others = 0;  ///< Leases of the tenant that are not fenced, this one apart.
  std::uint32_t wanted = 0;          ///< 0: as much as one extent holds.
  std::uint32_t blocks_per_extent = 1;
};

struct BlockAllowance {
  std::uint32_t extents = 0;
  std::uint32_t charged = 0;  ///< Blocks of those extents that may be used.
  std::uint32_t ceiling = 0;  ///< What this lease could be charged if it grew.
};

/// Whole extents for the demand; the last one is charged only as far as the quota goes.
/// Errors: QuotaBlocks with the numbers.
Result<BlockAllowance> allow_blocks(const BlockDemand& demand);

}  // namespace leasehold
