/// Hands a live lease over to a new one on the worker that replaces its own, with its KV memory.
///
///   old   Live ───────────── Revoked ─► Fenced, Retained ─► unmapped ──┐
///   new          granted ─► mapped ──┘                                 └─► Owned ─► mapped ─►
///   reply
///
/// The new lease is granted and mapped with one extent before the old one ends, so a worker that
/// cannot serve it costs the old one nothing. Nothing is copied and nothing needs memory twice. The
/// new worker gets the memory once the old one has unmapped it or has exited; what it finds there
/// is input, as after a death (adopt.hpp). Where the memory cannot go along, the call is answered
/// without it.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// How long the memory of a lease waits for its old worker to unmap it: longer than the broker lets
/// a worker live that does not.
Duration handover_grace(const BrokerConfig& config);

/// The lease whose memory goes to `old`'s replacement waits for it there. False for any other.
bool is_awaited(const State& state, const LeaseRecord& old);

/// Called once `by` is mapped. True if `call` waits for the memory of the lease that `by` replaces,
/// or was answered without it.
bool begin_handover(Decision& decision, LeaseRecord& by, CallId call);

/// Called when `old` has ended, its memory is unmapped, or it is no longer kept.
void continue_handover(Decision& decision, const LeaseRecord& old);

/// Called once the memory is mapped by the new worker, or the call is answered without it.
void finish_handover(Decision& decision, LeaseRecord& by);

}  // namespace leasehold
