/// The worker that a caller names, or that gets a new lease.
#pragma once

#include "broker/decide/wanted_worker.hpp"

namespace leasehold {

/// An Attached or Ready worker. Errors: UnknownWorker; BrokerLost while a worker of this name may
/// still reconnect after a broker restart.
Result<Worker*> find_worker(State& state, const std::string& name);

/// The worker of the wanted name, if it serves what is wanted; without a name, the ready one with
/// the fewest leases that does.
/// Errors: UnknownWorker, with what is served instead; NoModelLoaded, Draining; BrokerLost while
/// workers reconnect after a restart; BadRequest where several models are served to choose from;
/// MissingWeight for one that is out of service, or when no other worker serves or loads it.
Result<Worker*> choose_worker(State& state, const WantedWorker& wanted);

}  // namespace leasehold
