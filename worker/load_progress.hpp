/// A progress bar for loading weights.
#pragma once

#include "worker/model/weights.hpp"

namespace leasehold {

/// Draws on stderr after one second of loading, if stderr is a terminal.
LoadProgress load_progress_on_terminal();

}  // namespace leasehold
