/// The worker of a new lease.
#pragma once

#include "broker/books/state.hpp"

namespace leasehold {

/// The worker of this name; without a name, the ready one with the fewest leases.
/// Errors: UnknownWorker, NoModelLoaded, Draining, BrokerLost while workers reconnect after a
/// restart.
Result<Worker*> choose_worker(State& state, const std::optional<std::string>& wanted);

}  // namespace leasehold
