// What processes leave behind: schedstat files, a worker's log, its steps.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <future>
#include <string>
#include <thread>

#include "common/machine/process.hpp"
#include "tests/checks/bench/recover_bench.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/support/required.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::bench {
namespace {

const std::string kStart =
    "2026-11-24T02:45:01.000100 info leasehold-worker starting model=m.gguf\n"
    "2026-11-24T02:45:01.000300 info leasehold-worker model opened model=\"m\" vocabulary=8\n"
    "2026-11-24T02:45:01.000600 info leasehold-worker attached to the broker worker=0 slots=4\n"
    "2026-11-24T02:45:01.001000 info leasehold-worker weights bound model=\"m\" parts=1\n"
    "2026-11-24T02:45:02.000000 info leasehold-worker ready name=w address=a\n";

const LeaseId kFirst{.slot = 1, .generation = 1};
const LeaseId kSecond{.slot = 2, .generation = 1};
const LeaseId kOther{.slot = 3, .generation = 1};

events::StampedEvent step(std::vector<LeaseId> leases) {
  return {.event = events::BatchedDecodeStep{.per_seq_leases = std::move(leases)}, .at = {}};
}

}  // namespace

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

TEST_CASE("worker start: each stage ends with its line, and the fraction counts") {
  const StartTimes times = testing::required(last_start(kStart));
  CHECK(times[1] - times[0] == 200);
  CHECK(times[2] - times[1] == 300);
  CHECK(times[3] - times[2] == 400);
  CHECK(times[4] - times[3] == 999'000);
}

TEST_CASE("worker start: a log with several starts gives the last one") {
  std::string later = kStart;
  for (auto at = later.find("02:45"); at != later.npos; at = later.find("02:45"))
    later.replace(at, 5, "02:46");
  const StartTimes first = testing::required(last_start(kStart));
  const StartTimes last = testing::required(last_start(kStart + later));
  CHECK(last[0] - first[0] == 60'000'000);
}

TEST_CASE("worker start: a stage that is missing is an error, even if an earlier start has it") {
  const std::string incomplete = kStart.substr(0, kStart.find("2026-11-24T02:45:01.001000"));
  const auto times = last_start(kStart + incomplete);
  REQUIRE_FALSE(times);
  CHECK(times.error().code == Errc::BadRequest);
  CHECK(times.error().detail.contains("weights bound"));
}

TEST_CASE("worker start: a line without a time is an error") {
  std::string broken = kStart;
  broken.replace(0, 4, "year");
  CHECK(last_start(broken).error().code == Errc::BadRequest);
}

TEST_CASE("missed steps: a text that has a row in every step misses none, also over two leases") {
  const std::vector steps{step({kFirst, kOther}), step({kOther, kFirst}), step({kSecond, kOther})};
  const MissedSteps seen = missed_steps(steps, {kFirst, kSecond});
  CHECK(seen.taken == 3);
  CHECK(seen.missed == 0);
  CHECK(seen.longest_gap == 1);
}

TEST_CASE("missed steps: the steps of others between two of the text's own are missed") {
  const std::vector steps{step({kOther}),          step({kFirst}), step({kOther}),  step({kOther}),
                          step({kSecond, kOther}), step({kOther}), step({kSecond}), step({kOther})};
  const MissedSteps seen = missed_steps(steps, {kFirst, kSecond});
  CHECK(seen.taken == 3);
  CHECK(seen.missed == 3);
  CHECK(seen.longest_gap == 3);
}

TEST_CASE("missed steps: a text without a step misses none") {
  CHECK(missed_steps(std::vector{step({kOther})}, {kFirst}).longest_gap == 0);
}

}  // namespace leasehold::bench
