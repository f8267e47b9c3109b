/// How often somebody may do something: a bucket of tokens that fills with time.
///
/// Pure: time is an argument. Threads: one.
#pragma once

#include <algorithm>

#include "common/clock.hpp"

namespace leasehold {

struct Rate {
  double per_second = 0;
  double burst = 0;  ///< What may be done at once after a rest.
};

class TokenBucket {
 public:
  TokenBucket(Rate rate, TimePoint now) : rate_(rate), tokens_(rate.burst), filled_(now) {}

  /// As many of `wanted` as there are whole tokens for.
  std::size_t take(std::size_t wanted, TimePoint now) {
    fill(now);
    const std::size_t taken = std::min(wanted, static_cast<std::size_t>(std::max(0.0, tokens_)));
    tokens_ -= static_cast<double>(taken);
    return taken;
  }

  /// Takes them whether they are there or not; how long until they would have been. Who asks later
  /// waits behind. Precondition: the rate is not zero.
  Duration reserve(std::size_t wanted, TimePoint now) {
    fill(now);
    tokens_ -= static_cast<double>(wanted);
    return refill_time();
  }

  /// Until all that was reserved is there; zero when it is.
  Duration wait(TimePoint now) {
    fill(now);
    return refill_time();
  }

 private:
  Duration refill_time() const {
    if (tokens_ >= 0) return Duration::zero();
    return std::chrono::ceil<Duration>(std::chrono::duration<double>(-tokens_ / rate_.per_second));
  }

  void fill(TimePoint now) {
    const std::chrono::duration<double> passed = now - filled_;
    filled_ = now;
    tokens_ = std::min(rate_.burst, tokens_ + std::max(0.0, passed.count()) * rate_.per_second);
  }

  Rate rate_;
  double tokens_;
  TimePoint filled_;
};

}  // namespace leasehold
