/// A moving average of durations that limits the effect of a sample taken while the machine
/// stalled.
///
/// Pure. Threads: one.
#pragma once

#include <algorithm>
#include <optional>

namespace leasehold {

class BoundedAverage {
 public:
  static constexpr double kNewSample = 0.125;  ///< Weight of a new sample.
  /// Limit of a sample, in multiples of the expected time.
  static constexpr double kMostStall = 4;

  /// False before the first sample.
  explicit operator bool() const { return average_.has_value(); }
  /// Precondition: there is an average.
  double operator*() const { return *average_; }
  double value_or(double otherwise) const { return average_.value_or(otherwise); }

  void add(double sample) {
    const double before = average_.value_or(sample);
    average_ = before + kNewSample * (sample - before);
  }
  /// Counts the sample up to kMostStall times the average or `expected`, whichever is larger.
  /// Without an average and `expected`, the first sample counts unchanged.
  void add_bounded(double sample, double expected = 0) {
    const double usual = std::max(average_.value_or(expected), expected);
    add(average_ || expected > 0 ? std::min(sample, kMostStall * usual) : sample);
  }
  void scale(double factor) {
    if (average_) *average_ *= factor;
  }

 private:
  std::optional<double> average_;
};

}  // namespace leasehold
