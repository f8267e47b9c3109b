/// Retention: the KV memory of a lease that ended with its worker stays as it is for a time, so
/// that the tenant's next lease may adopt it (succession.hpp).
///
///   Draining ─fence, worker_gone or worker_replaced─► Retained ─adopted─► Owned
///                                                         └─time over, holder gone, room needed…─►
///                                                         Scrubbing
///
/// Only host memory is retained, and only for a holder that is still connected. The broker has the
/// only descriptors, so retained memory does not survive a restart of the broker. It is charged to
/// no quota. The broker scrubs it before it refuses KV memory, a lease slot or a new worker for
/// lack of room.
#pragma once

#include <optional>
#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// True if a fence of this lease retains its KV memory. Precondition: the lease is not Live.
bool retains_memory(const Decision& decision, const LeaseRecord& record);

/// True while the memory of this lease is retained.
bool is_retained(const State& state, const LeaseRecord& record);
std::vector<ExtentId> retained_extents(const State& state, const LeaseRecord& record);

/// True if no worker maps the memory any more.
bool is_unmapped_everywhere(const State& state, const LeaseRecord& record);

/// Sets the time until which the memory is retained. Precondition: the lease is Fenced; its KV
/// extents are Retained.
void start_retention(Decision& decision, LeaseRecord& record);

/// The leases whose memory is retained and that satisfy the predicate, the oldest first.
template <class Predicate>
std::vector<LeaseId> retained_where(State& state, Predicate matches) {
  std::vector<LeaseId> found;
  for (const auto& [until, id] : state.retained) {
    if (matches(std::as_const(state.leases.at(id)))) found.push_back(id);
  }
  return found;
}

/// Scrubs the retained memory of these leases. Ignores leases without retained memory.
void end_retention(Decision& decision, const std::vector<LeaseId>& leases);

/// Scrubs the retained memory of all leases of a tenant.
void end_retention_of(Decision& decision, const TenantId& tenant);

/// Scrubs the retained memory whose time is over.
void expire_retentions(Decision& decision);

/// Scrubs the oldest retained memory until it covers a demand of `extents` that lacks room. Returns
/// a retryable refusal; nothing if no memory is retained.
std::optional<Error> end_retentions_for(Decision& decision, std::uint64_t extents);

/// Errors: PoolExhausted if every slot of the lease table is in use. If memory is retained, the
/// oldest is then scrubbed, which frees its lease's slot, and the error is retryable.
Result<void> require_free_slot(Decision& decision);

/// Makes room for a new worker: chooses the exited worker whose leases have the oldest retained
/// memory, and scrubs all memory retained for that worker's leases. Returns a retryable refusal;
/// nothing if no exited worker has such leases.
std::optional<Error> end_retentions_of_exited_worker(Decision& decision);

}  // namespace leasehold
