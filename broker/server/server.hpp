/// The broker as a process: one thread, one io_context, all parts of the room put together.
#pragma once

#include "broker/server/options.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Serves until SIGTERM or SIGINT, then takes all leases back and returns.
/// Errors: those of start-up (socket, state directory, memory).
Result<void> run_broker(const BrokerOptions& options);

}  // namespace leasehold
