/// Time as an argument. All times are boot time: it advances while the machine sleeps and is equal
/// in every process of the machine.
#pragma once

#include <chrono>
#include <cstdint>

namespace leasehold {

using Duration = std::chrono::nanoseconds;

/// Nanoseconds since boot (CLOCK_BOOTTIME).
struct TimePoint {
  std::int64_t boottime_ns = 0;

  auto operator<=>(const TimePoint&) const = default;
  friend TimePoint operator+(TimePoint t, Duration d) { return {t.boottime_ns + d.count()}; }
  friend TimePoint operator-(TimePoint t, Duration d) { return {t.boottime_ns - d.count()}; }
  friend Duration operator-(TimePoint a, TimePoint b) {
    return Duration{a.boottime_ns - b.boottime_ns};
  }
};

/// Threads: any thread may read any implementation.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// The kernel's boot-time clock.
class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
};

/// A clock that moves only when a test sets it.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ = now_ + by; }

 private:
  TimePoint now_{1'000'000'000};
};

}  // namespace leasehold
