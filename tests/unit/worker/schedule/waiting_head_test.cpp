/// What a tick computes for the first waiting request of a lease.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

std::size_t hashes = 0;

PrefixKey counted_key(const PrefixKey& parent, std::span<const TokenId> tokens) {
  ++hashes;
  return next_prefix_key(parent, tokens);
}

/// A lease of 16 blocks whose prefix cache counts its hashes. Four blocks of "cold" are cached.
struct CountedLease : SchedulerFixture {
  CountedLease() {
    limit_blocks(100);
    tenancies().add({.lease = lease_id, .tenant = {"t1"}, .prefixes = PrefixIndex(counted_key)});
    grow(lease_id, 16);
    submit("cold", 70, 1);
    tick();
    REQUIRE(prefixes().size() == 4);
  }
  /// Prompts begin with the same text.
  void submit(const std::string& name, std::uint32_t prompt, std::uint32_t tokens) {
    PromptRequest wanted = request(lease_id, name, prompt, tokens);
    if (name != "other") std::iota(wanted.prompt.begin(), wanted.prompt.end(), 1);
    SchedulerFixture::submit(std::move(wanted));
  }
  const PrefixIndex& prefixes() const { return tenancies().at(lease_id).prefixes; }

  const LeaseId lease_id{1, 1};
};

}  // namespace

TEST_CASE("waiting head: a text that lacks blocks is hashed again only where the cache grew") {
  CountedLease fixture;
  fixture.submit("other", 90, 60);
  fixture.submit("warm", 160, 3);
  fixture.tick();
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 1);
  hashes = 0;
  const std::size_t before = fixture.prefixes().size();
  for (int i = 0; i < 50; ++i) fixture.tick();
  const std::size_t added = fixture.prefixes().size() - before;
  REQUIRE(added >= 3);
  CHECK(hashes <= 2 * added);  // the block of the running text, and the one that would follow
  REQUIRE(fixture.scheduler.running().size() == 1);

  while (fixture.scheduler.has_work()) fixture.tick();
  CHECK(fixture.tenancies().prefix_counters().hits == 4);
}

TEST_CASE("waiting head: blocks that are evicted while it waits are not hits") {
  CountedLease fixture;
  fixture.submit("other", 90, 60);
  fixture.submit("warm", 160, 3);
  fixture.tick();
  // A quota below the use evicts every cached block that no sequence uses.
  fixture.limit_blocks(1);
  fixture.limit_blocks(100);
  while (fixture.scheduler.has_work()) {
    fixture.tick();
    for (const GrowthRequest& growth : fixture.tenancies().take_growth_requests())
      fixture.grow(growth.lease, growth.blocks);
  }
  CHECK(fixture.tenancies().prefix_counters().hits == 0);
  CHECK(fixture.tenancies().prefix_counters().evictions >= 4);
}

TEST_CASE("waiting head: a request with a higher priority takes its place") {
  CountedLease fixture;
  fixture.submit("other", 90, 60);
  fixture.submit("warm", 160, 3);
  fixture.tick();
  PromptRequest urgent = fixture.request(fixture.lease_id, "urgent", 8, 3);
  urgent.priority = 1;
  fixture.SchedulerFixture::submit(urgent);
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 2);
  CHECK(fixture.running()[1]->request.engine_request_id == RequestId{"urgent"});
  CHECK(fixture.running()[1]->tokens.size() >= 8);
}

}  // namespace leasehold::testing
