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

TEST_CASE("bench: this process has run time, and a process that ended has none") {
  // The kernel counts a time slice when it ends, so a process that was never preempted has none.
  CHECK(eventually([] { return run_queue_of_process(::getpid()).ran_ns > 0; }));
  CHECK(run_queue_of_process(-1).ran_ns == 0);
}
