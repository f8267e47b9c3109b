/// The rule of tiers. A standard tenant, or a guaranteed one beyond its reserve, gets memory only
/// if the free extents and the extents of scavengers still cover every unused reserve. A scavenger
/// gets any free extent that is not kept for a tenant after a reclaim. A scavenger lease of another
/// tenant counts as one of a scavenger, and does not use the tenant's reserve.
///
/// A reserve is set in blocks and counted in whole extents, the unit in which memory is lent. Its
/// bytes are fixed when it is set, by the attached worker with the fewest blocks per extent.
/// Otherwise a worker with larger blocks that attaches later would enlarge the reserve at the cost
/// of all other tenants. Memory that is revoked but not free yet does not cover a reserve.
///
/// Pure. Without reserves, the tiers are equal.
#pragma once

#include <map>

#include "broker/decide/decision.hpp"

namespace leasehold {

struct ExtentDemand {
  enum class For : std::uint8_t { NewLease, Growth, Adapter };

  TenantId tenant;  ///< Empty for published text, which is treated like a standard tenant.
  AttachmentId worker;
  std::uint32_t extents = 0;
  bool scavenger = false;  ///< See LeaseAcquire.
  For purpose = For::NewLease;
};

/// True for a lease or a demand of a scavenger: by itself, or by its tenant's tier.
bool is_of_scavenger(const State& state, const TenantId& tenant, bool scavenger);

/// Errors: PoolExhausted while no device agent runs, or when the worker has no descriptors left.
Result<void> require_lendable(const State& state, const ExtentDemand& demand);

/// Errors: those of require_lendable; PoolExhausted, which says whether to wait for leases, release
/// quarantined memory or ask for fewer extents, or that the free extents are kept for guaranteed
/// tenants; BadRequest for a demand beyond the capacity, which is not retryable.
Result<void> require_room(const State& state, const ExtentDemand& demand, TimePoint now);

/// How many more extents must be free before require_room can accept the demand.
std::uint64_t lacking_extents(const State& state, const ExtentDemand& demand, TimePoint now);

/// The most extents that a lease of the tenant on the worker can ever hold. This is the capacity
/// without the reserves of other tenants (for a scavenger, the whole capacity), and at most as many
/// extents as the worker has descriptors for.
std::uint64_t most_extents(const State& state, const wire::TenantPolicy& policy,
                           const Worker& worker);

/// Extents that the lease has in the KV pool, in any state.
std::uint64_t kv_extents(const State& state, const LeaseRecord& record);

/// How many more extents the tenant may take within its reserve.
std::uint64_t unused_reserve(const State& state, const TenantId& tenant);

/// The extents that each holder of live leases has beyond its reserve, without scavenger leases.
/// The empty tenant holds published texts and shared adapters.
std::map<TenantId, std::uint64_t> extents_beyond_reserves(const State& state);

/// Free extents that are kept for other tenants after a reclaim.
std::uint64_t claimed_by_others(const State& state, const TenantId& tenant, TimePoint now);

/// Checks that the memory can cover the reserves with a new or changed policy. A change that covers
/// the reserves no worse than before is accepted. Errors: those of wire::TenantAdmit. Precondition:
/// check_policy accepts the policy.
Result<void> require_coverable(const State& state, const wire::TenantPolicy& policy);

/// The size in bytes of the policy's reserve, in whole extents. It stays as fixed for the tenant
/// unless the reserved blocks change. 0 while no worker is attached.
std::uint64_t reserve_for(const State& state, const wire::TenantPolicy& policy);

/// Fixes reserves that were set while no worker was attached, or by an older broker. Call it when
/// a worker is ready.
void fix_reserves(Decision& decision);

/// Extents by which all reserves together exceed the capacity, which can happen if the broker is
/// restarted with less memory.
std::uint64_t reserved_beyond_capacity(const State& state);

}  // namespace leasehold
