/// The options of adapters in the command line of leasehold-worker.
#pragma once

#include <CLI/CLI.hpp>

#include "worker/options.hpp"

namespace leasehold {

void add_adapter_options(CLI::App& app, WorkerOptions& options);

}  // namespace leasehold
