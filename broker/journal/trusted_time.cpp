#include "broker/journal/trusted_time.hpp"

#include <chrono>
#include <cstdlib>

namespace leasehold::journal {

void TrustedTime::look(std::int64_t clock_unix_ms, TimePoint now) {
  using std::chrono::milliseconds;
  const Duration passed = looked_at_ ? now - *looked_at_ : Duration::zero();
  const std::int64_t expected_ms =
      unix_ms_.value_or(clock_unix_ms) + std::chrono::duration_cast<milliseconds>(passed).count();
  looked_at_ = now;
  const std::int64_t ahead_ms = clock_unix_ms - expected_ms;
  const bool has_jumped = std::abs(ahead_ms) > longest_step_ / milliseconds(1);
  unix_ms_ = has_jumped ? expected_ms : clock_unix_ms;
  ahead_ms_ = has_jumped ? ahead_ms : 0;
}

}  // namespace leasehold::journal
