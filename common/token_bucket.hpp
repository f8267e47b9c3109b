/// Token bucket rate limiter. Time is an argument. Threads: one.
#pragma once

#include <algorithm>

#include "common/clock.hpp"

namespace leasehold {

struct Rate {
  double per_second = 0;
  double burst = 0;  ///< Capacity of the bucket.
};

class TokenBucket {
 public:
  TokenBucket(Rate rate, TimePoint now) : rate_(rate), tokens_(rate.burst), filled_(now) {}

  /// Takes up to `wanted` whole tokens and returns how many it took.
  std::size_t take(std::size_t wanted, TimePoint now) {
    fill(now);
    const std::size_t taken = std::min(wanted, static_cast<std::size_t>(std::max(0.0, tokens_)));
    tokens_ -= static_cast<double>(taken);
    return taken;
  }

  /// Returns taken tokens, up to the burst.
  void give_back(std::size_t count) {
    tokens_ = std::min(rate_.burst, tokens_ + static_cast<double>(count));
  }

  /// Takes `wanted` tokens even if the balance becomes negative, and returns the time until it is
  /// zero again. Later reservations wait behind this one. Precondition: the rate is not zero.
  Duration reserve(std::size_t wanted, TimePoint now) {
    fill(now);
    tokens_ -= static_cast<double>(wanted);
    return refill_time();
  }

  /// Time until the balance is not negative: all reserved tokens are there.
  Duration wait(TimePoint now) { return wait_for(0, now); }

  /// Time until `wanted` tokens are there; zero if they are there now.
  Duration wait_for(std::size_t wanted, TimePoint now) {
    fill(now);
    return refill_time(static_cast<double>(wanted));
  }

  /// Keeps the tokens that are left, up to the new burst.
  void set_rate(Rate rate, TimePoint now) {
    fill(now);
    rate_ = rate;
    tokens_ = std::min(rate_.burst, tokens_);
  }

 private:
  Duration refill_time(double wanted = 0) const {
    if (tokens_ >= wanted) return Duration::zero();
    return std::chrono::ceil<Duration>(
        std::chrono::duration<double>((wanted - tokens_) / rate_.per_second));
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
