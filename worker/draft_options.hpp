/// The options of a draft model in the command line of leasehold-worker.
#pragma once

#include <CLI/CLI.hpp>

#include "worker/options.hpp"

namespace leasehold {

void add_draft_options(CLI::App& app, WorkerOptions& options);

/// Called once the command line was parsed. Errors: BadRequest for options that do not go with a
/// draft model.
Result<void> check_draft(const WorkerOptions& options);

}  // namespace leasehold
