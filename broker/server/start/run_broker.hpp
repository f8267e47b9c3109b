/// The broker process: start-up, the event loop, shutdown.
#pragma once

#include "broker/server/start/options.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Serves until SIGTERM or SIGINT, then revokes all leases and returns.
/// Errors: those of start-up (socket, state directory, memory).
Result<void> run_broker(const BrokerOptions& options, ReloadOptions reload);

}  // namespace leasehold
