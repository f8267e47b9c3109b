/// A worker process from its first call to the broker to its last step.
///
///   main thread   attaches, loads, then runs the engine
///   I/O thread    broker and tenants: everything that has a socket
///   mapper        maps and prefaults what is granted
///   reader        makes tenants' requests into what the engine works with
///   reader        tenants' requests: templates, tokens, grammars
///   mapper        maps what is granted
///   unmapper      unmaps what is fenced
///   watcher       deadlines
///   pool          the backend's compute threads but the first, which is the main thread
#pragma once

#include "common/result.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// Runs until SIGTERM or SIGINT (success), or until the broker is gone and the last lease has run
/// out (BrokerLost: start again once there is a broker).
/// Errors: whatever kept it from serving.
Result<void> run_worker(const WorkerOptions& options);

}  // namespace leasehold
