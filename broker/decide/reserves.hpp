/// The rule of tiers: a standard tenant, or a guaranteed one beyond its reserve, gets memory only
/// if free extents and extents of scavengers still cover every unused reserve; a scavenger gets any
/// free extent that no reclaim keeps.
///
/// A reserve is set in blocks and counts in whole extents, the unit in which memory moves. Its
/// bytes are fixed when it is set, by the attached worker with the fewest blocks per extent: a
/// worker with larger blocks that comes later would otherwise take memory from all tenants. Memory
/// that is revoked and not free yet covers nothing.
///
/// Pure. Without reserves, the tiers are equal.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

struct ExtentDemand {
  TenantId tenant;  ///< Empty for published text, which counts as a standard tenant's.
  AttachmentId worker;
  std::uint32_t extents = 0;
};

/// Errors: PoolExhausted while no device agent runs, or when the worker has no descriptors left.
Result<void> require_lendable(const State& state, const ExtentDemand& demand);

/// Errors: as above; PoolExhausted, which says whether to wait for leases, release quarantined
/// memory, or ask for fewer, or that the free extents are kept for guaranteed tenants; BadRequest
/// for a demand beyond the capacity, so that no client retries it.
Result<void> require_room(const State& state, const ExtentDemand& demand, TimePoint now);

/// The most extents that a lease of the tenant on the worker can ever hold: the capacity, without
/// the reserves of others except for a scavenger, and the worker's descriptors.
std::uint64_t most_extents(const State& state, const wire::TenantPolicy& policy,
                           const Worker& worker);

/// Extents that the lease has in the KV pool, in any state.
std::uint64_t kv_extents(const State& state, const LeaseRecord& record);

/// Extents that the tenant may take and its reserve still covers.
std::uint64_t unused_reserve(const State& state, const TenantId& tenant);

/// Free extents that reclaims keep for other tenants.
std::uint64_t claimed_by_others(const State& state, const TenantId& tenant, TimePoint now);

/// Checks a new or changed policy against the memory. A change that covers no reserve worse than
/// before is accepted. Errors: as for wire::TenantAdmit. Precondition: check_policy accepts it.
Result<void> require_coverable(const State& state, const wire::TenantPolicy& policy);

/// The bytes of the policy's reserve, in whole extents: those fixed for the tenant while its
/// reserved blocks stay the same. 0 for a reserve while no worker is attached.
std::uint64_t reserve_for(const State& state, const wire::TenantPolicy& policy);

/// Fixes reserves that were set while no worker was attached, or by an older broker. Call it when
/// a worker is ready.
void fix_reserves(Decision& decision);

/// Extents by which all reserves together exceed the capacity: the broker was restarted with less
/// memory.
std::uint64_t reserved_beyond_capacity(const State& state);

}  // namespace leasehold
