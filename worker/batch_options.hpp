/// The options of batches in the command line of leasehold-worker.
#pragma once

#include <CLI/CLI.hpp>

#include "worker/options.hpp"

namespace leasehold {

void add_batch_options(CLI::App& app, WorkerOptions& options);

/// Completes the limits, once the command line was parsed. Errors: BadRequest for batches without
/// --http.
Result<void> resolve_batch_options(WorkerOptions& options);

}  // namespace leasehold
