/// Adoption: the KV memory of a tenant whose worker died goes to the tenant's next lease with its
/// contents.
///
///   Draining ─fence, worker_gone─► Retained ─acquire{replaces} on an equal worker─► Owned
///                                      └─grace over, holder gone, room needed…─► Scrubbing
///
/// A fence ends the lease but need not erase its memory. Only host memory is kept, and only for a
/// holder that is still connected. The broker has the only descriptors, so kept memory does not
/// survive a restart of the broker. Only the connection that held the old lease can adopt, for the
/// same tenant, once the old worker has unmapped the memory or exited. The new worker must have the
/// same user and KV identity as the old one; it also has the old one's name, or replaces it. A
/// lease that ends with `worker_replaced` keeps its memory like a lease whose worker died. A
/// handover (handover.hpp) keeps it even without --adopt-grace.
///
/// Kept memory is charged to no quota. The broker scrubs it before it refuses KV memory, a lease
/// slot or a new worker for lack of room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "broker/decide/decision.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/worker/wanted_worker.hpp"

namespace leasehold {

/// True if a fence of this lease keeps its KV memory. Precondition: not Live.
bool keeps_memory(const Decision& decision, const LeaseRecord& record);

/// True while the memory of this lease is kept.
bool is_kept(const State& state, const LeaseRecord& record);
std::vector<ExtentId> kept_extents(const State& state, const LeaseRecord& record);

/// True if no worker maps the memory any more.
bool is_unmapped_everywhere(const State& state, const LeaseRecord& record);

/// True if KV memory of one worker can be used by the other.
bool shares_kv(const Worker& worker, const Worker& old);

/// Sets the time until which the memory is kept. Precondition: the lease is Fenced; its KV extents
/// are Retained.
void start_retention(Decision& decision, LeaseRecord& record);

/// The leases whose memory is kept and that satisfy the predicate, the oldest first.
template <class Predicate>
std::vector<LeaseId> retained_where(State& state, Predicate matches) {
  std::vector<LeaseId> found;
  for (const auto& [until, id] : state.retained) {
    if (matches(std::as_const(state.leases.at(id)))) found.push_back(id);
  }
  return found;
}

/// Scrubs the kept memory of these leases. Ignores leases without kept memory.
void end_retention(Decision& decision, const std::vector<LeaseId>& leases);

/// Scrubs the kept memory of all leases of a tenant.
void end_retention_of(Decision& decision, const TenantId& tenant);

/// Scrubs the kept memory whose time is over.
void expire_retentions(Decision& decision);

/// Scrubs the oldest kept memory until it covers a demand of `extents` that lacks room. Returns a
/// retryable refusal; nothing if no memory is kept.
std::optional<Error> end_retentions_for(Decision& decision, std::uint64_t extents);

/// Errors: PoolExhausted if every slot of the lease table is in use. If memory is kept, the oldest
/// is then scrubbed, which frees its lease's slot, and the error is retryable.
Result<void> require_free_slot(Decision& decision);

/// Makes room for a new worker: scrubs all memory kept for the leases of one exited worker, the one
/// with the oldest such memory. Returns a retryable refusal; nothing if there is no such worker.
std::optional<Error> end_retentions_of_exited_worker(Decision& decision);

/// The lease whose kept memory the caller may adopt on some worker; null if there is none.
LeaseRecord* find_adoptable(State& state, const Caller& caller, const wire::LeaseAcquire& acquire);

/// The kept memory of the lease that an acquire replaces.
struct Adoption {
  std::optional<LeaseId> from;    ///< The caller's own lease whose memory is kept, if any.
  std::vector<ExtentId> extents;  ///< Retained extents. Empty if the worker cannot adopt them.
  std::uint32_t blocks = 0;       ///< The old lease's charge, at most what the quota leaves.
};

/// What the acquire can adopt on this worker.
Adoption find_adoption(State& state, const Caller& caller, const wire::LeaseAcquire& acquire,
                       const Worker& worker);

/// Chooses a worker for an acquire that names none: a worker that can adopt the memory and serves
/// what is wanted. Nothing if there is none.
std::optional<std::string> adopting_worker(State& state, const Caller& caller,
                                           const wire::LeaseAcquire& acquire,
                                           const WantedWorker& wanted);

/// The demand without the adopted extents.
ExtentDemand beyond(ExtentDemand demand, const Adoption& adoption);

/// Moves at most `count` extents to the lease `by` and scrubs the rest. Returns the moved extents.
std::vector<ExtentId> adopt_extents(Decision& decision, const Adoption& adoption,
                                    std::uint64_t count, LeaseRecord& by);

}  // namespace leasehold
