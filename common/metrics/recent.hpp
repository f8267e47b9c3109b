/// Caches a value that is expensive to make, so that frequent requests make it at most once a
/// second.
///
/// Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "common/clock.hpp"

namespace leasehold::metrics {

template <class T>
class Recent {
 public:
  static constexpr Duration kMaxAge = std::chrono::seconds(1);

  /// `clock` outlives it.
  Recent(const Clock& clock, std::function<T()> make) : clock_(&clock), make_(std::move(make)) {}

  /// The last value, when it was made less than a second ago. Stays valid until the next call.
  const T& read() {
    if (value_ && clock_->now() - made_at_ < kMaxAge) return *value_;
    value_.emplace(make_());
    made_at_ = clock_->now();
    return *value_;
  }

 private:
  const Clock* clock_;
  std::function<T()> make_;
  std::optional<T> value_;
  TimePoint made_at_;
};

}  // namespace leasehold::metrics
