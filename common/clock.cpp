#include "common/clock.hpp"

#include <ctime>

namespace leasehold {

TimePoint SystemClock::now() const {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
}

}  // namespace leasehold
