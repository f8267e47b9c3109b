/// Functions that acquire, grow, redelivery and weights share.
#pragma once

#include <optional>
#include <span>

#include "broker/decide/deciders.hpp"
#include "broker/decide/decision.hpp"

namespace leasehold {

/// Extents per `lease.grant`; a message carries at most 64 descriptors.
inline constexpr std::size_t kExtentsPerGrant = 60;

/// Where a new lease of a tenant lies, and which lease it is charged instead of.
struct GrantTerms {
  const Worker* worker = nullptr;
  std::optional<LeaseId> replaces;     ///< Charged once with it.
  std::optional<wire::RebindMode> as;  ///< The replaced lease is live.
  ApiKeyId api_key{};                  ///< The lease ends with it; empty: none.
  std::optional<std::uint32_t> first_extents = std::nullopt;  ///< Instead of what is charged.
};

/// Opens the lease of an acquire whose caller, tenant and worker were checked; the call is answered
/// once the worker has mapped it. For a live lease no memory is reclaimed from other tenants.
/// Errors: QuotaBlocks, PoolExhausted, RebindRateLimited.
CallResult grant_tenant_lease(Decision& decision, const Caller& caller,
                              const wire::LeaseAcquire& acquire, const GrantTerms& terms);

/// Blocks charged to the tenant's leases that are not Fenced, except the lease `apart`, and except
/// those that are charged to their replacement.
std::uint32_t charged_to_others(State& state, const TenantId& tenant, std::optional<LeaseId> apart);

/// Errors: BrokerLost (retryable) while the lease's worker has not resumed after a broker restart.
Result<void> require_worker_attached(const State& state, const LeaseRecord& record);

void set_holder(Decision& decision, const Caller& caller, LeaseRecord& record);

/// A repeated acquire on another connection of the same user makes that caller the holder.
/// Errors: LeaseRevoked, LeaseFenced, StaleGeneration once the lease has ended.
Result<Answer> reassign_holder(Decision& decision, const Caller& caller, Answer answer);
/// The same while the call `first` still waits for its answer.
void reassign_pending_holder(Decision& decision, const Caller& caller, CallId first);

/// The extents that a lease gets at once.
struct ExtentRequest {
  CallId call;  ///< Answered once the worker has mapped all of them.
  MemoryPool pool = MemoryPool::Kv;
  std::uint32_t count = 0;                 ///< Taken from the free ones.
  std::span<const ExtentId> adopted = {};  ///< The lease owns these already; sent first.
};

/// Takes extents for the lease and sends them to its worker. Precondition: enough extents are free.
void take_extents(Decision& decision, LeaseRecord& record, const ExtentRequest& request);

/// Asks the lease's worker for unused extents; no caller waits for them.
void ask_for_extents(Decision& decision, LeaseRecord& record, MemoryPool pool, std::uint32_t count);

/// Ends a lease that its worker has not mapped yet, and answers its acquire with `why`.
/// Precondition: the acquire is in flight.
void abandon_acquire(Decision& decision, LeaseRecord& record, const Error& why);

/// Fences a revoked lease at once if its descriptors never left the broker.
void fence_if_never_mapped(Decision& decision, const LeaseRecord& record);

/// The extents that the worker may use: neither draining nor scrubbing.
std::vector<ExtentId> owned_extents(const State& state, const LeaseRecord& record, MemoryPool pool);

/// Lowers the charge to what the owned KV extents hold.
void recharge(Decision& decision, LeaseRecord& record);

/// The reply to an acquire, and to its repetitions.
Answer acquired_answer(const State& state, const LeaseRecord& record);

/// The reply to a grow or a shrink: what the lease holds in the pool now.
Answer resized(const State& state, const LeaseRecord& record, MemoryPool pool);

}  // namespace leasehold
