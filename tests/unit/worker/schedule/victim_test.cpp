// Which sequences stop when blocks run out, without a scheduler.
#include "tests/unit/worker/schedule/parts_fixture.hpp"
#include "worker/schedule/preemption.hpp"

namespace leasehold::testing {
namespace {

/// Three sequences of one lease; the time of a row is unknown, so none is swapped.
struct Starving : PartsFixture {
  Transfers transfers{running};
  SwapPlanner swap{limits, tenancies, running, kv, transfers};
  Preemption preemption{tenancies, running, swap};
  Tenancy& tenancy = lease(1, 8);
  Sequence& oldest = run(tenancy, "oldest", 17, 16);
  std::vector<Relief> stopped;

  bool relieve() {
    return preemption.relieve({}, [this](const Relief& relief) { stopped.push_back(relief); });
  }
};

}  // namespace

TEST_CASE(
    "victim: a tenant over its quota stops one sequence in a step, however many lack blocks") {
  Starving test;
  Sequence& second = test.run(test.tenancy, "second", 17, 16);
  Sequence& latest = test.run(test.tenancy, "latest", 17, 16);
  for (Sequence* each : {&test.oldest, &second})
    test.preemption.note_starved({.sequence = each, .blocks = 1, .over_quota = true});
  CHECK(test.relieve());
  REQUIRE(test.stopped.size() == 1);
  CHECK(test.stopped[0].sequence == &latest);
  CHECK(test.stopped[0].cause == Errc::QuotaBlocks);
  CHECK_FALSE(test.stopped[0].end);
}

TEST_CASE("victim: a refusal of more than the sequences want stops none of them") {
  Starving test;
  Sequence& latest = test.run(test.tenancy, "latest", 17, 16);
  test.preemption.note_starved({.sequence = &latest, .blocks = 1});
  test.tenancy.growth.want(2);
  test.tenancy.growth.deny(3, Errc::PoolExhausted);
  CHECK_FALSE(test.relieve());
  CHECK(test.stopped.empty());
  CHECK_FALSE(test.tenancy.growth.is_denied(3));
}

TEST_CASE("victim: after a refusal the sequence of lowest priority with the least work stops") {
  Starving test;
  Sequence& high = test.run(test.tenancy, "high", 17, 16);
  Sequence& low = test.run(test.tenancy, "low", 33, 32);
  Sequence& lower = test.run(test.tenancy, "lower", 17, 16);
  high.request.priority = 2;
  low.request.priority = lower.request.priority = -1;
  test.preemption.note_starved({.sequence = &high, .blocks = 1});
  test.tenancy.growth.want(1);
  test.tenancy.growth.deny(1, Errc::PoolExhausted);
  CHECK(test.relieve());
  REQUIRE(test.stopped.size() == 1);
  CHECK(test.stopped[0].sequence == &lower);
  CHECK(test.stopped[0].cause == Errc::PoolExhausted);
  CHECK_FALSE(test.stopped[0].to_swap);
}

TEST_CASE("victim: a sequence that runs alone and does not fit ends with OutOfBlocks") {
  Starving test;
  test.preemption.note_starved({.sequence = &test.oldest, .blocks = 1});
  test.tenancy.growth.want(1);
  test.tenancy.growth.deny(1, Errc::PoolExhausted);
  CHECK(test.relieve());
  REQUIRE(test.stopped.size() == 1);
  CHECK(test.stopped[0].sequence == &test.oldest);
  REQUIRE(test.stopped[0].end);
  CHECK(test.stopped[0].end->code == Errc::OutOfBlocks);
}

}  // namespace leasehold::testing
