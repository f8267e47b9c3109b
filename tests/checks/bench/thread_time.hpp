/// Clocks for measuring work: CPU time of the calling thread, which excludes other threads on its
/// core, CPU time of a process, and wall-clock time.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <cstdint>

#include "common/clock.hpp"

namespace leasehold::bench {

inline double thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// The CPU time of all threads of the process, including those that have ended. 0 if the process is
/// unknown.
inline double process_time_ns(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

inline double wall_time_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

/// The clock for work on `threads` threads: CPU time for one thread, otherwise wall-clock time.
inline double work_time_ns(std::uint32_t threads) {
  return threads == 1 ? thread_time_ns() : wall_time_ns();
}

inline double ms_of(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace leasehold::bench
