/// Tenants and their quotas.
///
/// Pure. Blocks are charged per lease, from the grant until the lease is fenced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "broker/books/ids.hpp"
#include "broker/books/latency_histogram.hpp"
#include "broker/books/rebind_limiter.hpp"
#include "broker/books/shares.hpp"
#include "broker/books/token_shares.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// Free extents kept for a guaranteed tenant that retries. Others get none of them.
struct Claim {
  std::uint32_t extents = 0;
  TimePoint until;
};

struct Tenant {
  wire::TenantPolicy policy;
  /// The reserve, fixed when `reserved_blocks` is set: no worker that comes later changes it. 0
  /// beside a reserve: not fixed yet.
  std::uint64_t reserved_bytes = 0;
  Claim claim{};                    ///< Not journaled: the next refused acquire makes it anew.
  RebindLimiter rebinds;            ///< Not journaled: a restarted broker starts with a full burst.
  IdleTokens idle_tokens;           ///< Not journaled: a restarted broker starts with a full burst.
  bool draining = false;            ///< It gets no new lease.
  Shares shares;                    ///< Of max_concurrent; on workers with live leases.
  std::uint64_t last_revision = 0;  ///< Of the quotas sent.
  wire::TenantServed served;        ///< Not journaled: since the broker started.
  LatencyHistory rebind_latencies;  ///< Not journaled either.
  std::map<AttachmentId, std::uint32_t> cached_blocks;  ///< As each worker reported last.
};

class Tenants {
 public:
  /// Creates or changes a tenant. A quota lowered below current use revokes nothing; only requests
  /// that run already get blocks beyond it. Errors: BadRequest naming the value out of range.
  Result<void> admit(const wire::TenantPolicy& policy, TimePoint now);
  /// Precondition: none of its leases is Live.
  void remove(const TenantId& tenant);
  /// True for a tenant whose removal may not be on disk: it can be repeated.
  bool is_removal_unwritten(const TenantId& tenant) const {
    return unwritten_removals_.contains(tenant);
  }
  /// Every row is on disk.
  void removals_written() { unwritten_removals_.clear(); }
  /// Over all tenants.
  std::uint64_t reserved_blocks() const { return reserved_blocks_; }
  /// False when there is no such tenant.
  bool set_draining(const TenantId& tenant, bool draining);

  /// See RebindLimiter. Does nothing for an unknown tenant.
  void note_revoked(const TenantId& tenant, LeaseId lease, RevokeReason reason, TimePoint now);
  /// Errors: UnknownTenant, also if the policy names another user, who is then not revealed.
  Result<const Tenant*> find_for(const TenantId& tenant, std::uint32_t uid) const;

  Tenant* find(const TenantId& tenant);
  const Tenant* find(const TenantId& tenant) const;
  const std::map<TenantId, Tenant>& all() const { return tenants_; }

 private:
  std::map<TenantId, Tenant> tenants_;
  std::uint64_t reserved_blocks_ = 0;
  std::set<TenantId> unwritten_removals_;
};

/// Errors: BadRequest naming the value out of range, or a reserve that the policy cannot have.
Result<void> check_policy(const wire::TenantPolicy& policy);

/// The policy with the given limits changed. Null: a new tenant's, from the defaults.
wire::TenantPolicy with_changes(const Tenant* tenant, const wire::TenantAdmit& changes);

/// The blocks that an acquire requests, and the limits.
struct BlockDemand {
  std::uint32_t max_blocks = 0;      ///< Of the policy.
  std::uint32_t charged_others = 0;  ///< To the tenant's other leases that are not Fenced.
  std::uint32_t wanted = 0;          ///< 0: one extent.
  std::uint32_t blocks_per_extent = 1;
};

struct BlockAllowance {
  std::uint32_t extents = 0;
  std::uint32_t charged = 0;  ///< Blocks in those extents that may be used.
};

/// Rounds the demand up to whole extents; the last one is charged only up to the quota.
/// Errors: QuotaBlocks; with `retry_after_ms` when other leases of the tenant hold the blocks.
Result<BlockAllowance> allow_blocks(const BlockDemand& demand);

}  // namespace leasehold
