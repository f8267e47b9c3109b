/// `brokerctl worker sleep` and `wake`: a worker gives the memory of its weights to others while
/// its other leases stay live.
///
///   Awake ─worker.sleep, weights.sleep (idle)─► Asleep ─worker.wake, weights.wake─► Waking
///     ▲                                           ▲                                  │  │
///     │                                           └─── no room: weights.sleep ───────┘  │
///     └──────────── worker.weights: it has all parts, or cannot restore one ◄───────────┘
///
/// Asleep: the worker's engine leases are revoked with `worker_asleep`, and it gets no other. When
/// the last of them on a region is fenced and unmapped, the region is closed instead of retained.
/// The worker still gets leases of tenants: its next request wakes it.
///
/// Not journaled: a worker that resumes after a broker restart reports that it is asleep.
#pragma once

#include <string>
#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Notifies the worker, then revokes its engine leases. Returns the revoked leases.
/// `why` is the reason in the event.
std::vector<LeaseId> put_to_sleep(Decision& decision, Worker& worker, std::string why);

/// Ends the sleep of a worker that reports its weights: it has all of them if nothing is missing.
void note_weights(Decision& decision, Worker& worker, const wire::WorkerWeights& weights);

/// True if the region of this engine lease is closed, not retained, once it has no users.
bool gives_weights_back(const State& state, const LeaseRecord& record);

}  // namespace leasehold
