#include "common/boottime_timer.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace leasehold;

namespace {

/// Timers of this process on the boot-time clock, by the kernel's word.
int timers_on_boot_time() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) found += line == "clockid: 7";
  }
  return found;
}

constexpr TimePoint kNever{INT64_MAX};

}  // namespace

TEST_CASE(
    "boot alarm: it runs on the clock of the deadlines, which no sleep of the machine stops") {
  const int before = timers_on_boot_time();
  const BoottimeTimer alarm = BoottimeTimer::create().value();
  CHECK(timers_on_boot_time() == before + 1);
}

TEST_CASE("boot alarm: a moment that has passed is not waited for, one that comes is") {
  BoottimeTimer alarm = BoottimeTimer::create().value();
  CHECK_FALSE(alarm.wait_until(TimePoint{}));
  const TimePoint soon = SystemClock().now() + std::chrono::milliseconds(2);
  CHECK_FALSE(alarm.wait_until(soon));
  CHECK(SystemClock().now() >= soon);
}

TEST_CASE("boot alarm: whoever rings is heard, before the sleep and during it, and once") {
  BoottimeTimer alarm = BoottimeTimer::create().value();
  alarm.wake();
  alarm.wake();
  CHECK(alarm.wait_until(kNever));
  CHECK_FALSE(alarm.wait_until(TimePoint{}));

  const std::jthread other([&alarm] { alarm.wake(); });
  CHECK(alarm.wait_until(kNever));
}
