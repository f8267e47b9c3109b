/// The scenario of the demo: four requests alone, the same four side by side with one revocation
/// and one kill, then a query of all leases, events and memory.
#pragma once

#include <iosfwd>

#include "tests/checks/demo/display.hpp"
#include "tests/checks/demo/observation.hpp"
#include "tests/checks/demo/system.hpp"

namespace leasehold::demo {

/// Prints a sentence per part to `out` and the streams to `display`.
/// Errors: those that end the scenario early. `judge` checks the observation.
Result<Observation> run_scenario(System& system, Display& display, std::ostream& out);

}  // namespace leasehold::demo
