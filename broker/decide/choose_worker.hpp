/// Finds the worker that a caller names, or chooses one for a new lease.
#pragma once

#include "broker/decide/wanted_worker.hpp"

namespace leasehold {

/// The Attached or Ready worker of this name. Errors: UnknownWorker; BrokerLost while a worker of
/// this name may still reconnect after a broker restart.
Result<Worker*> find_worker(State& state, const std::string& name);

/// The worker of the wanted name, if it serves what is wanted. Without a name: the ready worker
/// with the fewest leases that serves it. Errors: UnknownWorker, naming what is served instead;
/// NoModelLoaded; Draining; BrokerLost while workers reconnect after a broker restart; BadRequest
/// if the caller must choose between several models; MissingWeight if only a worker that is out of
/// service serves it.
Result<Worker*> choose_worker(State& state, const WantedWorker& wanted);

}  // namespace leasehold
