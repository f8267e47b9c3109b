/// A text that is expensive to make, and that anyone may ask for: made at most once a second.
///
/// Threads: one.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "common/clock.hpp"

namespace leasehold::metrics {

class RecentText {
 public:
  static constexpr Duration kMaxAge = std::chrono::seconds(1);

  /// `clock` outlives it. Precondition: `make` gives no empty text.
  RecentText(const Clock& clock, std::function<std::string()> make)
      : clock_(&clock), make_(std::move(make)) {}

  /// The last text, when it was made less than a second ago.
  const std::string& read() {
    if (!text_.empty() && clock_->now() - made_at_ < kMaxAge) return text_;
    text_ = make_();
    made_at_ = clock_->now();
    return text_;
  }

 private:
  const Clock* clock_;
  std::function<std::string()> make_;
  std::string text_;
  TimePoint made_at_;
};

}  // namespace leasehold::metrics
