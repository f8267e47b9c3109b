/// What the judge finds in a history that a test has spoiled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/checks/soak/history.hpp"

namespace leasehold::soak {

using Spoil = std::function<void(History&)>;

/// The promises of the checks that fail after `spoil` has changed the good history.
std::vector<std::string> broken(History good, const Spoil& spoil);

/// Exactly one check fails, and its promise contains `about`.
void check_finds(History good, const std::string& about, const Spoil& spoil);

}  // namespace leasehold::soak
