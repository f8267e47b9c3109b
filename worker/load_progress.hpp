/// A progress bar for loading weights.
#pragma once

#include "worker/model/weights.hpp"

namespace leasehold {

/// Draws on stderr once loading has taken a second; nothing when stderr is no terminal.
LoadProgress load_progress_on_terminal();

}  // namespace leasehold
