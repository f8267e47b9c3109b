/// Uses pings to detect workers that stop answering. Leases that wait for a fence or an unmap have
/// their own timeouts (decide/timers.cpp).
///
/// At most one ping is outstanding per worker. The timeout is measured in checks that find the ping
/// unanswered, four per timeout, and not in elapsed time. A broker that was suspended has made at
/// most one check in that time, and so kills no worker because of the pause.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Probes the worker from now on.
void start_liveness_probes(Decision& decision, Worker& worker);

/// Checks the workers whose check is due: pings a worker that has no outstanding ping, and kills a
/// worker whose ping was found unanswered too often.
void probe_liveness(Decision& decision);

/// These start and stop the timeout for calls to the worker about a live lease.
void note_call_sent(Decision& decision, LeaseRecord& record);
void note_call_answered(Decision& decision, LeaseRecord& record);

/// Sends SIGKILL and revokes the worker's leases with WorkerHung. `waiting_for` as in
/// events::WorkerUnresponsive.
void kill_worker(Decision& decision, Worker& worker, std::string_view waiting_for,
                 Duration timeout);

}  // namespace leasehold
