/// Adoption: the KV memory of a tenant whose worker died goes to the tenant's next lease, with its
/// bytes.
///
///   Draining ─fence, worker_gone─► Retained ─acquire{replaces} on an equal worker─► Owned
///                                      └─grace over, holder gone, room needed…─► Scrubbing
///
/// A fence ends the lease, not the bytes. Memory is kept only for a holder that is still connected,
/// and only host memory: the descriptors stay in the broker, so it does not survive a restart of
/// the broker. Only the connection that held the old lease adopts, for the same tenant, once the
/// old worker has unmapped the memory or exited. The new worker has the same user and KV identity,
/// and the old one's name or its place. A lease that ends with `worker_replaced` keeps its memory
/// like one whose worker died; a handover (handover.hpp) does so whatever is configured.
///
/// Kept memory is charged to no quota, because a demand that lacks KV memory, a lease slot or a
/// place for a worker ends it first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "broker/decide/decision.hpp"
#include "broker/decide/reserves.hpp"
#include "broker/decide/wanted_worker.hpp"

namespace leasehold {

/// True if the KV memory of this lease is kept at its fence. Precondition: not Live.
bool keeps_memory(const Decision& decision, const LeaseRecord& record);

/// True while the memory of this lease is kept.
bool is_kept(const State& state, const LeaseRecord& record);
std::vector<ExtentId> kept_extents(const State& state, const LeaseRecord& record);

/// True if no worker maps the memory any more.
bool is_let_go(const State& state, const LeaseRecord& record);

/// True if KV memory of one worker means the same on the other.
bool shares_kv(const Worker& worker, const Worker& old);

/// Notes until when the memory is kept. Precondition: Fenced; its KV extents are Retained.
void start_retention(Decision& decision, LeaseRecord& record);

/// Leases whose memory is kept.
template <class Predicate>
std::vector<LeaseId> retained_where(State& state, Predicate matches) {
  std::vector<LeaseId> found;
  for (const auto& [until, id] : state.retained) {
    if (matches(std::as_const(state.leases.at(id)))) found.push_back(id);
  }
  return found;
}

/// Scrubs the kept memory of these leases. Does nothing for others.
void end_retention(Decision& decision, const std::vector<LeaseId>& leases);

/// Scrubs the kept memory of all leases of a tenant.
void end_retention_of(Decision& decision, const TenantId& tenant);

/// Ends retentions whose time is over.
void expire_retentions(Decision& decision);

/// For a demand of `extents` that lacks room: ends the oldest retentions until their extents cover
/// it. Returns the refusal, which is to be retried; nothing if no memory is kept.
std::optional<Error> end_retentions_for(Decision& decision, std::uint64_t extents);

/// Errors: PoolExhausted if every slot of the lease table is in use. If a lease whose memory is
/// kept has one, the oldest gives it up, and the refusal is to be retried.
Result<void> require_free_slot(Decision& decision);

/// For a worker that finds no place: ends the retentions of one worker that has exited, which has
/// the oldest. Returns the refusal, which is to be retried; nothing if no memory is kept.
std::optional<Error> end_retentions_of_exited_worker(Decision& decision);

/// The lease whose kept memory the caller may adopt on some worker; null if there is none.
LeaseRecord* find_adoptable(State& state, const Caller& caller, const wire::LeaseAcquire& acquire);

/// The kept memory that an acquire replaces.
struct Adoption {
  std::optional<LeaseId> from;    ///< The caller's own lease whose memory is kept, if any.
  std::vector<ExtentId> extents;  ///< Retained. Empty where the worker cannot adopt them.
  std::uint32_t blocks = 0;       ///< The old lease's charge, within what the quota leaves.
};

/// What the acquire can adopt on this worker.
Adoption find_adoption(State& state, const Caller& caller, const wire::LeaseAcquire& acquire,
                       const Worker& worker);

/// The worker for an acquire that names none: one that can adopt and serves what is wanted. Nothing
/// if none can.
std::optional<std::string> adopting_worker(State& state, const Caller& caller,
                                           const wire::LeaseAcquire& acquire,
                                           const WantedWorker& wanted);

/// What the acquire needs beside the adopted extents.
ExtentDemand beyond(ExtentDemand demand, const Adoption& adoption);

/// Moves at most `count` extents to the lease, and scrubs the rest. Returns those that moved.
std::vector<ExtentId> adopt_extents(Decision& decision, const Adoption& adoption,
                                    std::uint64_t count, LeaseRecord& by);

}  // namespace leasehold
