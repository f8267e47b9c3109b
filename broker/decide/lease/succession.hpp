/// Succession: a new lease continues the texts of an old lease of the same holder.
///
///   call                          old lease             KV memory of the old lease
///   acquire{replaces}             has ended             adopted if retained, else computed again
///   replace, on the same worker   live, then drains     copied by the worker
///   replace, mode failover        live, then revoked    adopted, else computed again
///
/// With mode failover, the new lease is on the worker that replaces the old lease's worker. The new
/// lease is always mapped before a live old lease ends, so that the old one is unaffected if the
/// new one cannot be served:
///
///   old   Live ──────────────────────── drains ─── no request left, or kReplaceGrace ──► Revoked
///   new         granted ─► mapped ─► reply
///
///   old   Live ────────────────── Revoked ─► Fenced, Retained ─► unmapped ──┐            failover
///   new         granted ─► mapped ──┘                                       └─► adopted ─► reply
///
/// While the old lease is live, the pair counts once against the quota but needs memory twice: all
/// of it for a copy, one extent for a failover. Three rules limit this memory: a lease is replaced
/// at most once, its replacement cannot be replaced before the old lease is fenced, and the old
/// lease always ends.
///
/// Memory is adopted only by the connection that held the old lease, for the same tenant, once the
/// old worker has unmapped it or exited (retention.hpp). The new worker has the user and KV
/// identity of the old one; it also has the old one's name, or replaces it. It checks the contents
/// as untrusted input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "broker/decide/decision.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/worker/choose_worker.hpp"

namespace leasehold {

/// How long a replaced lease may drain before it is revoked.
inline constexpr Duration kReplaceGrace = std::chrono::seconds(2);

/// How long a new lease waits for the old worker to unmap the memory. Longer than the timeout after
/// which the broker kills a worker that does not unmap.
Duration handover_grace(const BrokerConfig& config);

/// True if a new lease waits for the memory of `old`.
bool is_memory_awaited(const State& state, const LeaseRecord& old);

/// Notes that `by` replaces `old`. A live lease is then charged to its replacement.
void begin_succession(Decision& decision, LeaseId old, LeaseRecord& by);

/// Answers the call of the new lease and ends the old one; a failover first waits for the memory.
/// Call it once all extents of `by` are mapped; `by` need not replace a lease.
void finish_succession(Decision& decision, LeaseRecord& by, CallId call);

/// Call it when `old` has ended, when its memory has been unmapped, and when that memory has been
/// released.
void continue_succession(Decision& decision, const LeaseRecord& old);

/// Call it when `by` has ended. If the lease that it replaces is live, that lease is charged again.
/// If the acquire of `by` failed, that lease can be replaced again.
void end_succession(Decision& decision, const LeaseRecord& by);

/// The lease whose retained memory the caller may adopt on some worker; null if there is none.
LeaseRecord* find_adoptable(State& state, const Caller& caller, const wire::LeaseAcquire& acquire);

/// The retained memory of the lease that an acquire replaces.
struct Adoption {
  std::optional<LeaseId> from;    ///< The caller's own lease whose memory is retained, if any.
  std::vector<ExtentId> extents;  ///< Retained extents. Empty if the worker cannot adopt them.
  std::uint32_t blocks = 0;       ///< The old lease's charge, at most what the quota leaves.
};

/// What the acquire can adopt on this worker. Memory of a scavenger lease goes only to a scavenger.
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
