/// Detects workers that stop answering, by pings. Leases that wait for a fence or an unmap have
/// timeouts of their own (decide/timers.cpp).
///
/// The timeout counts unanswered probes, four per timeout, not elapsed time: a broker that was
/// itself suspended has probed once in that time and kills no worker for it.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Probes the worker from now on.
void start_liveness_probes(Decision& decision, Worker& worker);

/// Pings workers whose probe is due, and kills those with too many unanswered probes.
void probe_liveness(Decision& decision);

/// These start and stop the timeout for calls to the worker about a live lease.
void note_call_sent(Decision& decision, LeaseRecord& record);
void note_call_answered(Decision& decision, LeaseRecord& record);

/// Sends SIGKILL and revokes the worker's leases with WorkerHung. `waiting_for` as in
/// events::WorkerUnresponsive.
void kill_worker(Decision& decision, Worker& worker, std::string_view waiting_for,
                 Duration timeout);

}  // namespace leasehold
