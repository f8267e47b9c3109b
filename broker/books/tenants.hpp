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
#include "broker/books/rate_shares.hpp"
#include "broker/books/rebind_limiter.hpp"
#include "broker/books/shares.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// Free extents that are kept for a guaranteed tenant while it retries. Other tenants do not get
/// them.
struct Claim {
  std::uint32_t extents = 0;
  TimePoint until;
};

/// What `cell.part_changed` depends on: requests and blocks beyond the limits, and the demand
/// rounded up to a power of two.
struct ToldPart {
  journal::PartRevision part;
  std::uint32_t may_run = 0;
  std::uint32_t blocks_held = 0;
  std::uint32_t demand = 0;
  bool confirmed = true;
  bool operator==(const ToldPart&) const = default;
};

struct Tenant {
  wire::TenantPolicy policy;
  std::int64_t admitted_unix_ms = 0;  ///< See wire::TenantAdmission.
  /// Size of the reserve. It is fixed when `reserved_blocks` is set, and a worker that attaches
  /// later does not change it. 0 while `reserved_blocks` is not 0: not fixed yet.
  std::uint64_t reserved_bytes = 0;
  Claim claim{};               ///< Not journaled: the next refused acquire creates it again.
  RebindLimiter rebinds;       ///< Not journaled: a restarted broker starts with a full burst.
  IdleTime idle;               ///< Not journaled: a restarted broker starts with a full burst.
  bool draining = false;       ///< It gets no new lease.
  Shares shares;               ///< Shares of max_concurrent, one per worker with live leases.
  journal::DayUse use;         ///< Tokens of this day, by usage records.
  journal::PartRevision part;  ///< Set for a tenant of a cell.
  /// Workers that have had a quota of this part. What others have of an earlier part is void. Not
  /// journaled.
  std::set<AttachmentId> part_workers;
  /// What the agent of its cell knows of the part (broker/decide/tenant/cell.hpp). Not journaled.
  std::optional<ToldPart> told;
  std::uint64_t told_uses = 0;
  TimePoint told_at;
  std::uint64_t uses = 0;           ///< See wire::CellPart. Not journaled.
  std::uint64_t last_revision = 0;  ///< Revision of the last quota sent.
  wire::TenantServed served;        ///< Counts since the broker started. Not journaled.
  LatencyHistory rebind_latencies;  ///< Not journaled.
  /// Cached blocks in each worker's last report.
  std::map<AttachmentId, std::uint32_t> cached_blocks;
};

class Tenants {
 public:
  /// Creates or changes a tenant. A quota that is lowered below the current use revokes nothing;
  /// only requests that already run can get blocks beyond the new quota. Errors: BadRequest naming
  /// the value out of range.
  Result<void> admit(const wire::TenantPolicy& policy, TimePoint now);
  /// Precondition: none of its leases is Live.
  void remove(const TenantId& tenant);
  /// True if the removal of this tenant may not be on disk yet; an operator may then repeat it.
  bool is_removal_unwritten(const TenantId& tenant) const {
    return unwritten_removals_.contains(tenant);
  }
  /// Call it when all rows are on disk.
  void removals_written() { unwritten_removals_.clear(); }
  /// Sum over all tenants.
  std::uint64_t reserved_blocks() const { return reserved_blocks_; }
  /// False when there is no such tenant.
  bool set_draining(const TenantId& tenant, bool draining);

  /// See RebindLimiter. Does nothing for an unknown tenant.
  void note_revoked(const TenantId& tenant, LeaseId lease, RevokeReason reason, TimePoint now);
  /// Finds the tenant, if its policy permits this user. Errors: UnknownTenant, also if the policy
  /// names another user, so that the error does not reveal that the tenant exists.
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

/// Replaces the limits that `changes` has.
void apply_changes(wire::RateLimits& rates, const wire::RateLimits& changes);

/// The tenant's policy with the changes applied. Null tenant: the default policy with the changes
/// applied.
wire::TenantPolicy with_changes(const Tenant* tenant, const wire::TenantAdmit& changes);

/// The blocks that an acquire requests, and the limits.
struct BlockDemand {
  std::uint32_t max_blocks = 0;  ///< Limit of the policy.
  /// Blocks charged to the tenant's other leases that are not Fenced.
  std::uint32_t charged_others = 0;
  std::uint32_t wanted = 0;  ///< 0: one extent.
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
