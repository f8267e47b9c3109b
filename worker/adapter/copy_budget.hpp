/// Limits the bytes of an adapter that are copied between two steps, so that a load delays running
/// texts by at most a share of each step. Pure: durations are arguments.
#pragma once

#include <cstdint>

#include "common/clock.hpp"

namespace leasehold {

class CopyBudget {
 public:
  /// The share of a step's time that copies may take.
  static constexpr double kShare = 0.03;
  /// The least that is copied at once; time for it is saved over several steps.
  static constexpr std::uint64_t kMinBytes = 4 << 10;

  /// The bytes that may be copied after a step of this duration.
  std::uint64_t after_step(Duration step);
  /// Records a copy between two steps.
  void copied(std::uint64_t bytes, Duration duration);

 private:
  double bytes_per_ns_ = 1;  // slower than memory, until a copy is measured
  double saved_ns_ = 0;      // granted and not used
};

}  // namespace leasehold
