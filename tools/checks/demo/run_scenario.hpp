/// The demo from first to last: four requests undisturbed, the same four side by side with a
/// revocation and a death among them, then a look at everything that is left.
#pragma once

#include <iosfwd>

#include "tools/checks/demo/display.hpp"
#include "tools/checks/demo/observation.hpp"
#include "tools/checks/demo/stage.hpp"

namespace leasehold::demo {

/// `out` gets a sentence per act; `screen` the streams.
/// Errors: whatever kept the demo from being played to its end. What was seen is judged elsewhere.
Result<Observation> play(Stage& stage, Screen& screen, std::ostream& out);

}  // namespace leasehold::demo
