/// Checks a history for what must hold under every kill, stop and revocation. Pure.
///
/// A check without samples fails, because it proves nothing.
#pragma once

#include <vector>

#include "tests/checks/demo/checks.hpp"
#include "tests/checks/soak/lease_trace.hpp"

namespace leasehold::soak {

std::vector<demo::Check> judge(const History& history);

}  // namespace leasehold::soak
