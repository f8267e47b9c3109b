/// Shows the progress of loading weights as a bar on the terminal.
#pragma once

#include "worker/model/weights.hpp"

namespace leasehold {

/// Returns a function that draws a bar on stderr after one second of loading, if stderr is a
/// terminal.
LoadProgress load_progress_on_terminal();

}  // namespace leasehold
