/// Bounds work by counted steps, so that the bound is the same on every machine: the compiling of
/// one grammar, one mask, or one slice of a mask.
///
/// Threads: one.
#pragma once

#include <cstddef>
#include <limits>

namespace leasehold {

struct WorkBudget {
  /// Of compiling one grammar. A schema of 32 KiB needs less than a tenth of it.
  static constexpr std::size_t kMaxCompileSteps = 400'000;

  std::size_t left = kMaxCompileSteps;
  std::size_t spent = 0;     ///< With `spend` it may exceed the budget by the last step.
  std::size_t refusals = 0;  ///< More than one: a caller went on without the steps it asked for.

  static WorkBudget unlimited() { return {std::numeric_limits<std::size_t>::max()}; }

  /// Before the work: takes the steps, or returns false when fewer are left. The caller fails then.
  bool take(std::size_t steps) {
    const bool fits = steps <= left;
    if (fits) spend(steps);
    if (!fits) ++refusals;
    return fits;
  }

  /// After the work. When `left` is 0, the caller stops.
  void spend(std::size_t steps) {
    spent += steps;
    left = steps < left ? left - steps : 0;
  }
};

}  // namespace leasehold
