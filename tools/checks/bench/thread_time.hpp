/// CPU time of the calling thread, so that other threads on its core do not count.
#pragma once

#include <time.h>

namespace leasehold::bench {

inline double thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace leasehold::bench
