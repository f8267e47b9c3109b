/// What must hold whatever was killed, stopped or taken back, checked against a history. Pure.
///
/// A promise that nothing was held against is not kept: a judge who saw nothing proves nothing.
#pragma once

#include <vector>

#include "tools/checks/demo/checks.hpp"
#include "tools/checks/soak/lease_trace.hpp"

namespace leasehold::soak {

std::vector<demo::Check> judge(const History& history);

}  // namespace leasehold::soak
