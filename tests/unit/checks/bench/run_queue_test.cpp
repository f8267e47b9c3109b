#include "tests/checks/bench/run_queue.hpp"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "common/machine/process.hpp"
#include "tests/support/test_paths.hpp"

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
  CHECK(eventually([] { return run_queues_of(::getpid())["main"].ran_ns > 0; }));
  CHECK(run_queues_of(-1).empty());
}

TEST_CASE("bench: threads of a process are listed by name") {
  std::promise<void> named, done;
  std::jthread thread([&] {
    set_thread_name("bench-test");
    named.set_value();
    done.get_future().wait();
  });
  named.get_future().wait();
  CHECK(run_queues_of(::getpid()).contains("bench-test"));
  done.set_value();
}

TEST_CASE("bench: the delay between two snapshots counts the named threads") {
  const ThreadRunQueues early = {{"main", {0, 100}}, {"io", {0, 10}}, {"ended", {0, 5}}};
  const ThreadRunQueues late = {{"main", {0, 300}}, {"io", {0, 17}}, {"new", {0, 900}}};
  CHECK(waited_ns(early, late, std::array{"main"}) == 200);
  CHECK(waited_ns(early, late, std::array{"main", "io"}) == 207);
  CHECK(waited_ns(early, late, std::array{"ended", "new"}) == 0);
  CHECK(sum_of(late).waited_ns == 1217);
}

TEST_CASE("bench: between two snapshots a thread ran and waited, and a new one counts from zero") {
  const ThreadRunQueues early = {{"main", {50, 100}}, {"io", {9, 10}}, {"ended", {0, 5}}};
  const ThreadRunQueues late = {{"main", {70, 300}}, {"io", {3, 17}}, {"new", {4, 900}}};
  ThreadRunQueues sum = run_queues_between(early, late);
  CHECK_FALSE(sum.contains("ended"));
  add(sum, {{"main", {1, 2}}});
  CHECK(sum["main"].ran_ns == 21);
  CHECK(sum["main"].waited_ns == 202);
  CHECK(sum["io"].ran_ns == 0);  // fewer threads have this name than before
  CHECK(sum["new"].waited_ns == 900);
}
