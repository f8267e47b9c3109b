/// Bounds work by counted steps, so that the bound is the same on every machine: the compiling of
/// one grammar, one mask, or one slice of a mask.
#pragma once

#include <cstddef>
#include <limits>

namespace leasehold {

struct WorkBudget {
  std::size_t left;
  std::size_t spent = 0;  ///< May exceed the budget by the last step.

  static WorkBudget unlimited() { return {std::numeric_limits<std::size_t>::max()}; }

  /// False once the budget is used up.
  bool spend(std::size_t steps) {
    spent += steps;
    left = steps < left ? left - steps : 0;
    return left > 0;
  }
};

}  // namespace leasehold
