/// Functions shared by the deciders for acquire, growth, redelivery and weights.
#pragma once

#include <optional>
#include <span>

#include "broker/decide/deciders.hpp"
#include "broker/decide/decision.hpp"

namespace leasehold {

/// Extents per `lease.grant`; a message carries at most 64 descriptors.
inline constexpr std::size_t kExtentsPerGrant = 60;

/// The worker of a new tenant lease, the lease that it replaces, and its other terms.
struct GrantTerms {
  const Worker* worker = nullptr;
  std::optional<LeaseId> replaces;  ///< The replaced lease; the quota counts only one of the pair.
  /// How the requests move. Set if the replaced lease is live.
  std::optional<wire::RebindMode> as;
  ApiKeyId api_key{};  ///< The lease ends when this key is revoked; empty: none.
  /// Number of extents to take first, if not as many as are charged.
  std::optional<std::uint32_t> first_extents = std::nullopt;
};

/// Opens the lease of an acquire whose caller, tenant and worker were checked. The call is answered
/// once the worker has mapped the lease. No memory is reclaimed from other tenants to replace a
/// lease that is live. Errors: QuotaBlocks, PoolExhausted, RebindRateLimited.
CallResult grant_tenant_lease(Decision& decision, const Caller& caller,
                              const wire::LeaseAcquire& acquire, const GrantTerms& terms);

/// Blocks charged to the tenant's leases, except the lease `apart`. Leases that are Fenced or
/// charged to their replacement do not count.
std::uint32_t charged_to_others(State& state, const TenantId& tenant, std::optional<LeaseId> apart);

/// Errors: BrokerLost (retryable) while the lease's worker has not resumed after a broker restart.
Result<void> require_worker_attached(const State& state, const LeaseRecord& record);

void set_holder(Decision& decision, const Caller& caller, LeaseRecord& record);

/// Makes the caller, which repeated an acquire on another connection of the same user, the holder
/// of the lease in the answer. Errors: LeaseRevoked, LeaseFenced, StaleGeneration once the lease
/// has ended.
Result<Answer> reassign_holder(Decision& decision, const Caller& caller, Answer answer);
/// Does what reassign_holder does, while the acquire `first` still waits for its answer.
void reassign_pending_holder(Decision& decision, const Caller& caller, CallId first);

/// The extents that a lease gets in one grant.
struct ExtentRequest {
  CallId call;  ///< Answered once the worker has mapped all extents.
  MemoryPool pool = MemoryPool::Kv;
  std::uint32_t count = 0;  ///< Number of free extents to take.
  /// Extents that the lease already owns; they are sent first.
  std::span<const ExtentId> adopted = {};
  bool may_stay_idle = false;  ///< See effect::CreateExtents.
};

/// Takes extents for the lease and sends them to its worker. Precondition: enough extents are free.
void grant_extents(Decision& decision, LeaseRecord& record, const ExtentRequest& request);

/// Asks the lease's worker to return `count` unused extents. No caller waits for them.
void ask_for_extents(Decision& decision, LeaseRecord& record, MemoryPool pool, std::uint32_t count);

/// Revokes the lease and answers its acquire with `why`. Precondition: the acquire is in flight.
void abandon_acquire(Decision& decision, LeaseRecord& record, const Error& why);

/// Fences a revoked lease at once if its descriptors never left the broker.
void fence_if_never_mapped(Decision& decision, const LeaseRecord& record);

/// The extents that the worker may use: neither draining nor scrubbing.
std::vector<ExtentId> owned_extents(const State& state, const LeaseRecord& record, MemoryPool pool);

/// Lowers the charge to what the owned KV extents hold.
void recharge(Decision& decision, LeaseRecord& record);

/// The reply to an acquire and to its repetitions.
Answer acquired_answer(const State& state, const LeaseRecord& record);

/// The reply to a grow or a shrink: what the lease holds in the pool now.
Answer resized(const State& state, const LeaseRecord& record, MemoryPool pool);

}  // namespace leasehold
