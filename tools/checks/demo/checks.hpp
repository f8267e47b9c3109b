/// What the demo promises, each promise checked against what was seen. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/checks/demo/observation.hpp"

namespace leasehold::demo {

struct Check {
  std::string promise;
  bool ok = false;
  std::string seen;  ///< The values that decided it.
};

/// In the order in which they are told.
std::vector<Check> judge(const Observation& seen);

bool all_ok(const std::vector<Check>& checks);

}  // namespace leasehold::demo
