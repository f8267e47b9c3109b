#include "common/unix_time.hpp"

namespace leasehold {

std::int64_t unix_time_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::floor<std::chrono::milliseconds>(now).count();
}

Duration unix_minus_boottime() {
  const auto unix_time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(unix_time) -
         Duration(SystemClock().now().boottime_ns);
}

}  // namespace leasehold
