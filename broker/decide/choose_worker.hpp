/// The worker that a caller names, or that gets a new lease.
#pragma once

#include "broker/books/state.hpp"

namespace leasehold {

/// An Attached or Ready worker. Errors: UnknownWorker; BrokerLost while a worker of this name may
/// still reconnect after a broker restart.
Result<Worker*> find_worker(State& state, const std::string& name);

/// The worker of this name; without a name, the ready one with the fewest leases.
/// Errors: UnknownWorker, NoModelLoaded, Draining, BrokerLost while workers reconnect after a
/// restart; MissingWeight for one that is out of service, or when no other worker is ready or
/// loads its model.
Result<Worker*> choose_worker(State& state, const std::optional<std::string>& wanted);

}  // namespace leasehold
