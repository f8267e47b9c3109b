/// Bounds the work of compiling one grammar by counted steps, so that the bound is the same on
/// every machine.
#pragma once

#include <cstddef>

namespace leasehold {

struct WorkBudget {
  std::size_t left;

  /// False once the budget is used up.
  bool spend(std::size_t steps) {
    left = steps < left ? left - steps : 0;
    return left > 0;
  }
};

}  // namespace leasehold
