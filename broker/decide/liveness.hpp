/// Is the worker still there, and at it? For workers from whom nothing was taken back: the others
/// are on the ladder anyway.
///
/// Silence is counted in looks, four to a timeout, each a decision of its own: a broker that stood
/// itself, or slept with its machine, has looked once in all that time and kills nobody for it.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// The worker is connected: it is looked for from now on.
void start_liveness_probes(Decision& decision, Worker& worker);

/// Pings whoever is due, and kills who was silent for too long.
void probe_liveness(Decision& decision);

/// The worker was asked something about a live lease, or has answered something of it.
void note_call_sent(Decision& decision, LeaseRecord& record);
void note_call_answered(Decision& decision, LeaseRecord& record);

/// The last rung: a process that exits holds nothing. `waiting_for` as in
/// events::WorkerUnresponsive.
void kill_worker(Decision& decision, Worker& worker, std::string_view waiting_for,
                 Duration timeout);

}  // namespace leasehold
