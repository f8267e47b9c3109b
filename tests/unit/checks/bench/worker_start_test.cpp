#include "tests/checks/bench/worker_start.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/required.hpp"

namespace leasehold::bench {
namespace {

const std::string kStart =
    "2026-11-24T02:45:01.000100 info leasehold-worker starting model=m.gguf\n"
    "2026-11-24T02:45:01.000300 info leasehold-worker model opened model=\"m\" vocabulary=8\n"
    "2026-11-24T02:45:01.000600 info leasehold-worker attached to the broker worker=0 slots=4\n"
    "2026-11-24T02:45:01.001000 info leasehold-worker weights bound model=\"m\" parts=1\n"
    "2026-11-24T02:45:02.000000 info leasehold-worker ready name=w address=a\n";

}  // namespace

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

}  // namespace leasehold::bench
