#include "tools/checks/bench/run_queue.hpp"
#include "tests/support/test_paths.hpp"

#include <unistd.h>
#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::bench;

TEST_CASE("bench: schedstat has run time, wait time and slices") {
  const auto seen = parse_schedstat("123456 7890 12\n");
  REQUIRE(seen);
  CHECK(seen->ran_ns == 123456);
  CHECK(seen->waited_ns == 7890);
}

TEST_CASE("bench: a truncated schedstat is an error") {
  CHECK(parse_schedstat("").error().code == Errc::MalformedMessage);
  CHECK(parse_schedstat("12 34").error().code == Errc::MalformedMessage);
  CHECK(parse_schedstat("12 a 3").error().code == Errc::MalformedMessage);
}

TEST_CASE("bench: steal time is the eighth column of the first line") {
  const auto ticks = parse_steal_ticks("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 44 0 0\n");
  REQUIRE(ticks);
  CHECK(*ticks == 88);
  CHECK(parse_steal_ticks("cpu 1 2 3").error().code == Errc::MalformedMessage);
  CHECK(parse_steal_ticks("intr 1 2 3 4 5 6 7 8 9").error().code == Errc::MalformedMessage);
}

TEST_CASE("bench: this process has run time, and a process that ended has none") {
  // The kernel counts a time slice when it ends, so a process that was never preempted has none.
  CHECK(eventually([] { return run_queue_of_process(::getpid()).ran_ns > 0; }));
  CHECK(run_queue_of_process(-1).ran_ns == 0);
}
