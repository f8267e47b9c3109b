/// The median of the last three durations: a single outlier of a stalled machine has no effect, and
/// a lasting change takes effect with its second sample. With two samples the smaller one counts.
///
/// Pure. Threads: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace leasehold {

class RecentMedian {
 public:
  static constexpr std::size_t kTimes = 3;

  /// False before the first sample.
  explicit operator bool() const { return count_ > 0; }
  /// Precondition: there is a sample.
  double operator*() const {
    auto times = times_;
    std::sort(times.begin(), times.begin() + count_);
    return times[(count_ - 1) / 2];
  }
  void add(double time) {
    times_[next_] = time;
    next_ = (next_ + 1) % kTimes;
    count_ = std::min(count_ + 1, kTimes);
  }

 private:
  std::array<double, kTimes> times_ = {};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

}  // namespace leasehold
