/// Detects workers that stop answering, by pings. Leases that wait for a fence or an unmap have
/// timeouts of their own (decide/timers.cpp).
///
/// One ping is outstanding at a time. The timeout counts checks that find it unanswered, four per
/// timeout, not elapsed time: a broker that was itself suspended has checked once in that time and
/// kills no worker for it.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Probes the worker from now on.
void start_liveness_probes(Decision& decision, Worker& worker);

/// Checks the workers whose check is due: pings those without an outstanding ping, and kills those
/// whose ping was found unanswered too often.
void probe_liveness(Decision& decision);

/// These start and stop the timeout for calls to the worker about a live lease.
void note_call_sent(Decision& decision, LeaseRecord& record);
void note_call_answered(Decision& decision, LeaseRecord& record);

/// Sends SIGKILL and revokes the worker's leases with WorkerHung. `waiting_for` as in
/// events::WorkerUnresponsive.
void kill_worker(Decision& decision, Worker& worker, std::string_view waiting_for,
                 Duration timeout);

}  // namespace leasehold
