#include "common/machine/boottime_timer.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace leasehold;

namespace {

/// Boot-time timers of this process, as the kernel reports them.
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

TEST_CASE("boot-time timer: it uses the clock of deadlines, which counts suspend") {
  const int before = timers_on_boot_time();
  const BoottimeTimer timer = BoottimeTimer::create().value();
  CHECK(timers_on_boot_time() == before + 1);
}

TEST_CASE("boot-time timer: it waits for a future time and not for a past one") {
  BoottimeTimer timer = BoottimeTimer::create().value();
  CHECK_FALSE(timer.wait_until(TimePoint{}));
  const TimePoint soon = SystemClock().now() + std::chrono::milliseconds(2);
  CHECK_FALSE(timer.wait_until(soon));
  CHECK(SystemClock().now() >= soon);
}

TEST_CASE("boot-time timer: a wakeup before or during a wait ends one wait") {
  BoottimeTimer timer = BoottimeTimer::create().value();
  timer.wake();
  timer.wake();
  CHECK(timer.wait_until(kNever));
  CHECK_FALSE(timer.wait_until(TimePoint{}));

  const std::jthread other([&timer] { timer.wake(); });
  CHECK(timer.wait_until(kNever));
}
