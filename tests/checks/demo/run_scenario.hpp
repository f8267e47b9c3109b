/// The scenario of the demo: four requests alone, the same four side by side with one revocation
/// and one kill, and two of them under adapters, while one adapter is revoked; then a query of all
/// leases, events and memory, and the four beside the death of the worker.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "tests/checks/demo/display.hpp"
#include "tests/checks/demo/observation.hpp"

namespace leasehold::demo {

/// Runs the scenario in this directory. Prints a sentence per part to `out` and shows the streams
/// on `display`. Errors: those that end the scenario early. `judge` checks the observation.
Result<Observation> run_scenario(const Settings& settings, const runner::Poller& poller,
                                 const std::filesystem::path& directory, Display& display,
                                 std::ostream& out);

}  // namespace leasehold::demo
