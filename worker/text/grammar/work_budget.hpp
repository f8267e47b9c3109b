/// Limits the work for one grammar, one mask, or one slice of a mask. Work is counted in steps, so
/// that the limit is the same on every machine.
///
/// Threads: one.
#pragma once

#include <cstddef>
#include <limits>

namespace leasehold {

struct WorkBudget {
  /// The limit for compiling one grammar. A schema of 32 KiB needs less than a tenth of it.
  static constexpr std::size_t kMaxCompileSteps = 400'000;

  std::size_t left = kMaxCompileSteps;
  std::size_t spent = 0;  ///< May exceed the budget by the last `spend`.
  /// Failed calls of `take`. More than one: a caller went on after the first.
  std::size_t refusals = 0;

  static WorkBudget unlimited() { return {std::numeric_limits<std::size_t>::max()}; }

  /// Call before the work. Takes the steps, or returns false if fewer are left; the caller fails
  /// then.
  bool take(std::size_t steps) {
    const bool fits = steps <= left;
    if (fits) spend(steps);
    if (!fits) ++refusals;
    return fits;
  }

  /// Call after the work. When `left` is 0, the caller stops.
  void spend(std::size_t steps) {
    spent += steps;
    left = steps < left ? left - steps : 0;
  }
};

}  // namespace leasehold
