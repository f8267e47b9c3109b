/// Checks every promise of the demo against the observation. Pure.
#pragma once

#include <string>
#include <vector>

#include "tests/checks/demo/observation.hpp"

namespace leasehold::demo {

struct Check {
  std::string promise;
  bool ok = false;
  std::string seen;  ///< The observed values that decide.
};

/// In report order.
std::vector<Check> judge(const Observation& seen);

bool all_ok(const std::vector<Check>& checks);

}  // namespace leasehold::demo
