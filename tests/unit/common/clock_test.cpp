#include "common/clock.hpp"

#include <catch2/catch.hpp>
#include <ctime>

using namespace leasehold;
using namespace std::chrono_literals;

TEST_CASE("clock: time points differ by durations") {
  const TimePoint start{1'000};
  CHECK(start + 1us == TimePoint{2'000});
  CHECK(start - 500ns == TimePoint{500});
  CHECK(TimePoint{2'500} - start == 1500ns);
  CHECK(start < start + 1ns);
}

TEST_CASE("clock: a manual clock moves only by advance") {
  ManualClock clock;
  const TimePoint start = clock.now();
  CHECK(clock.now() == start);
  clock.advance(3s);
  CHECK(clock.now() - start == 3s);
}

TEST_CASE("clock: the system clock is the kernel's boot time") {
  const auto boottime = [] {
    timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return TimePoint{t.tv_sec * 1'000'000'000 + t.tv_nsec};
  };
  const TimePoint before = boottime();
  const TimePoint read = SystemClock{}.now();
  CHECK(before <= read);
  CHECK(read <= boottime());
}
