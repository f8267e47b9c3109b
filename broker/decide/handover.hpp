/// Hands a live lease, with its KV memory, over to a new lease on the worker that replaces the old
/// lease's worker.
///
///   old   Live ─────── Revoked ─► Fenced, Retained ─► unmapped ──┐
///   new    granted ─► mapped ──┘                                 └─► Owned ─► mapped ─► reply
///
/// The new lease is granted and mapped with one extent before the old lease ends, so the old lease
/// is unaffected if the new worker cannot serve. No memory is copied, and apart from that extent
/// none is needed twice. The new worker gets the memory once the old worker has unmapped it or
/// exited. The new worker checks its contents as input, as in any adoption (adopt.hpp). If the
/// memory cannot be handed over, the call is answered without it.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// How long a handover waits for the old worker to unmap the memory. Longer than the timeout after
/// which the broker kills a worker that does not unmap.
Duration handover_grace(const BrokerConfig& config);

/// True if a handover waits for the memory of `old`.
bool is_awaited(const State& state, const LeaseRecord& old);

/// Call it once the new lease `by` is mapped. True if this is a handover: then `call` waits for the
/// memory of the old lease, or was answered without it.
bool begin_handover(Decision& decision, LeaseRecord& by, CallId call);

/// Call it when `old` has ended, its memory is unmapped, or its memory is no longer kept.
void continue_handover(Decision& decision, const LeaseRecord& old);

/// Call it once the new worker has mapped the memory, or the call is answered without it.
void finish_handover(Decision& decision, LeaseRecord& by);

}  // namespace leasehold
