/// Reloads the configuration on SIGHUP while the worker runs.
#pragma once

#include <functional>
#include <optional>

#include "worker/engine/engine_loop.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// Reads the command line and the configuration file again. After an error, prints it and returns
/// nothing.
using ReloadOptions = std::function<std::optional<WorkerOptions>()>;

/// Applies the log level, the drain timeout and the limits of waiting requests; logs every other
/// change as one that needs a restart. A file with an error changes nothing.
void reload_configuration(WorkerOptions& running, const ReloadOptions& read, EngineLoop& loop);

}  // namespace leasehold
