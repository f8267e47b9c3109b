// Requests under scavenger leases: they run when no others do, and give way to others.
#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/scheduler_fixture.hpp"
#include "worker/schedule/rows/scavenger_share.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

struct ScavengerFixture : SchedulerFixture {
  using SchedulerFixture::SchedulerFixture;

  LeaseId scavenger(std::uint32_t slot, std::uint32_t blocks = 64) {
    const TenantId tenant{"t" + std::to_string(slot)};
    limit_blocks(1000, tenant);
    const LeaseId id{slot, 2};
    tenancies().add({.lease = id, .tenant = tenant, .is_scavenger = true});
    grow(id, blocks);
    return id;
  }
};

}  // namespace

TEST_CASE("scavengers: alone they get every row, prompts included") {
  ScavengerFixture fixture;
  const LeaseId batch = fixture.scavenger(1);
  for (const char* id : {"a", "b", "c"}) fixture.submit(batch, id, 30, 4);
  fixture.tick();
  CHECK(fixture.rows_of({"t1"}) == 90);
  fixture.tick();
  CHECK(fixture.rows_of({"t1"}) == 3);
}

TEST_CASE("scavengers: beside others they get one row of forty, and still finish") {
  ScavengerFixture fixture;
  const LeaseId other = fixture.lease(1, 16);
  const LeaseId batch = fixture.scavenger(2);
  fixture.submit(other, "long", 4, 200);
  for (int i = 0; i < 4; ++i) fixture.submit(batch, "line" + std::to_string(i), 2, 2);
  std::uint32_t others = 0;
  std::uint32_t scavengers = 0;
  std::size_t ended = 0;
  for (int step = 0; step < 190; ++step) {
    ended += only<Completed>(fixture.tick()).size();
    CHECK(fixture.rows_of({"t1"}) >= 1);
    others += fixture.rows_of({"t1"});
    scavengers += fixture.rows_of({"t2"});
    CHECK(scavengers * ScavengerShare::kRowsOfOthers <= others);
  }
  CHECK(scavengers == others / ScavengerShare::kRowsOfOthers);
  CHECK(ended == 1);  // a line has three rows
}

TEST_CASE("scavengers: they are admitted after all others, and give their places to others") {
  ScavengerFixture fixture({.max_batch_size = 2});
  const LeaseId batch = fixture.scavenger(1);
  const LeaseId other = fixture.lease(2, 16);
  for (const char* id : {"a", "b", "c"}) fixture.submit(batch, id, 4, 50);
  fixture.tick();
  CHECK(fixture.running().size() == 2);
  fixture.submit(other, "x", 4, 3);
  fixture.submit(other, "y", 4, 3);
  const auto preempted = only<Preempted>(fixture.tick());
  REQUIRE(preempted.size() == 1);
  CHECK(preempted[0].engine_request_id == RequestId{"b"});
  fixture.tick();
  for (const auto& sequence : fixture.running()) CHECK_FALSE(sequence->is_scavenger);
  std::size_t ended = 0;
  for (int step = 0; step < 300 && ended < 5; ++step)
    ended += only<Completed>(fixture.tick()).size();
  CHECK(ended == 5);
}

TEST_CASE("scavengers: others at their own limit of requests take no place") {
  ScavengerFixture fixture({.max_batch_size = 2});
  const LeaseId batch = fixture.scavenger(1);
  const LeaseId other = fixture.lease(2, 16, 1);
  fixture.submit(other, "x", 4, 20);
  fixture.submit(other, "y", 4, 20);
  fixture.submit(batch, "a", 4, 20);
  CHECK(only<Preempted>(fixture.tick()).empty());
  CHECK(fixture.running().size() == 2);
  CHECK(only<Preempted>(fixture.tick()).empty());
}

TEST_CASE("scavengers: a tenant's batch does not delay its other requests") {
  ScavengerFixture fixture({.max_batch_size = 1});
  const LeaseId batch = fixture.scavenger(1);
  fixture.submit(batch, "line", 4, 100);
  for (int step = 0; step < 100; ++step) fixture.tick();
  const LeaseId own = fixture.lease(1, 16);
  const LeaseId other = fixture.lease(2, 16);
  fixture.submit(other, "x", 4, 1);
  fixture.submit(own, "y", 4, 1);
  fixture.tick();
  fixture.tick();
  CHECK(fixture.running().empty());  // both have run
}

TEST_CASE("scavengers: a batch gives its tenant no credit for other requests") {
  ScavengerFixture fixture;
  const LeaseId batch = fixture.scavenger(1);
  const LeaseId other = fixture.lease(2, 16);
  fixture.submit(batch, "line", 4, 200);
  fixture.submit(other, "long", 4, 200);
  for (int step = 0; step < 50; ++step) fixture.tick();
  const LeaseId own = fixture.lease(1, 16);
  const TenantAccount& account = *fixture.tenancies().at(own).account;
  CHECK(account.counter == nullptr);
  CHECK(*account.scavenger_counter > 0);
  const TokenCounters::Count served = *fixture.tenancies().at(other).account->counter;
  fixture.submit(own, "x", 4, 10);
  fixture.tick();
  CHECK(*account.counter >= served);
}

TEST_CASE("scavenger share: unused rows are kept, up to a limit") {
  ScavengerShare share;
  CHECK(share.rows() == 0);
  share.note_others(ScavengerShare::kRowsOfOthers * 3);
  CHECK(share.rows() == 3);
  share.note_scavengers(2);
  CHECK(share.rows() == 1);
  share.note_others(1'000'000);
  CHECK(share.rows() == ScavengerShare::kMostRows);
  share.note_scavengers(100);
  CHECK(share.rows() == 0);
}
