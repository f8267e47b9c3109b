/// Clocks for work: CPU time of the calling thread, so that other threads on its core do not count,
/// and wall-clock time.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace leasehold::bench {

inline double thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

inline double wall_time_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

/// For work on `threads` threads: CPU time if there is one, otherwise wall-clock time.
inline double work_time_ns(std::uint32_t threads) {
  return threads == 1 ? thread_time_ns() : wall_time_ns();
}

}  // namespace leasehold::bench
