/// The demo from first to last: four requests undisturbed, the same four side by side with a
/// revocation and a death among them, then a look at everything that is left.
#pragma once

#include <iosfwd>

#include "tools/checks/demo/display.hpp"
#include "tools/checks/demo/observation.hpp"
#include "tools/checks/demo/system.hpp"

namespace leasehold::demo {

/// `out` gets a sentence per act; `display` the streams.
/// Errors: whatever kept the demo from being played to its end. What was seen is judged elsewhere.
Result<Observation> run_scenario(System& system, Display& display, std::ostream& out);

}  // namespace leasehold::demo
