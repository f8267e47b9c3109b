/// The median of the last three times: one that a stalled machine took does not count, and a
/// lasting change counts from its second time on. Of two times the smaller one counts, and a single
/// one as it is.
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

  /// Nothing before the first time.
  explicit operator bool() const { return count_ > 0; }
  /// The smaller one of two. Precondition: there is a time.
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
