// What a lease's cached blocks save, and what they give way to. A block has sixteen tokens, a
// sequence one record block.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/support/block_conservation.hpp"
#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

std::vector<TokenId> numbered(std::uint32_t count, TokenId from = 100) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

struct Run {
  std::uint32_t rows = 0;  // of the prompt
  std::vector<SchedulerEvent> events;
};

void submit(SchedulerFixture& fixture, PromptRequest request, std::vector<TokenId> prompt) {
  request.prompt = std::move(prompt);
  fixture.submit(std::move(request));
}

/// Submits a prompt and runs all ticks until nothing moves.
Run run(SchedulerFixture& fixture, const PromptRequest& request, std::vector<TokenId> prompt) {
  submit(fixture, request, std::move(prompt));
  Run run;
  bool moved = true;
  while (fixture.scheduler.has_work() && moved) {
    const auto events = fixture.tick();
    check_block_conservation(fixture.scheduler);
    if (run.rows == 0) run.rows = fixture.row_count();
    moved = !fixture.plan.parts.empty() || !events.empty();
    run.events.insert(run.events.end(), events.begin(), events.end());
  }
  return run;
}

/// Ends the first sequence as one that met a logit that is not finite.
void end_damaged(SchedulerFixture& fixture) {
  fixture.scheduler.end_sequence(*fixture.running().front(),
                                 {.reason = CompletionReason::EngineError,
                                  .error = Error{Errc::NumericFault, "a logit is not finite"}});
}

std::uint32_t cached(const SchedulerFixture& fixture, LeaseId lease) {
  return fixture.tenancies().at(lease).prefixes.unused();
}

/// "+id" where blocks begin to hold text of a request, "-id" where they cease.
std::vector<std::string> kv_changes(SchedulerFixture& fixture) {
  std::vector<std::string> changes;
  for (const KvChange& change : fixture.scheduler.take_kv_changes())
    changes.push_back((change.is_held ? "+" : "-") + change.engine_request_id.value);
  return changes;
}

using Changes = std::vector<std::string>;

}  // namespace

TEST_CASE("prefix cache: a prompt computes only what follows its cached blocks") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  CHECK(run(fixture, fixture.request(lease, "cold"), numbered(70)).rows == 70);
  CHECK(cached(fixture, lease) == 4);
  CHECK(run(fixture, fixture.request(lease, "warm"), numbered(70)).rows == 70 - 64);
  CHECK(run(fixture, fixture.request(lease, "shorter"), numbered(40)).rows == 40 - 32);
  CHECK(run(fixture, fixture.request(lease, "whole blocks"), numbered(32)).rows == 16);
  std::vector<TokenId> branch = numbered(70);
  branch[50] = 1;  // in the fourth block
  CHECK(run(fixture, fixture.request(lease, "branch"), branch).rows == 70 - 48);
  const PrefixCounters counters = fixture.tenancies().prefix_counters();
  CHECK(counters.hits == 4 + 2 + 1 + 3);
  CHECK(counters.misses == 4 + 0 + 0 + 0 + 1);
  CHECK(counters.evictions == 0);
  CHECK(counters.cross_tenant_hits == 0);
}

TEST_CASE("prefix cache: what a tenant cached saves no row of another tenant or lease") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  const LeaseId stranger = fixture.lease(2, 40);
  const LeaseId second = fixture.lease_of({"t1"}, 3, 40);
  run(fixture, fixture.request(lease, "first"), numbered(70));
  CHECK(run(fixture, fixture.request(stranger, "same"), numbered(70)).rows == 70);
  PromptRequest request = fixture.request(second, "other lease");
  request.tenant = {"t1"};
  CHECK(run(fixture, request, numbered(70)).rows == 70);
  CHECK(fixture.tenancies().prefix_counters().hits == 0);
}

TEST_CASE("prefix cache: blocks of a sequence that runs are used by others, and outlive it") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  submit(fixture, fixture.request(lease, "first", 1, 40), numbered(40));
  fixture.tick();
  submit(fixture, fixture.request(lease, "second", 1, 40), numbered(40));
  fixture.tick();
  CHECK(fixture.row_count() == 1 + 8);
  REQUIRE(fixture.scheduler.running().size() == 2);
  const auto shared = fixture.running()[0]->blocks.cached();
  CHECK(std::ranges::equal(shared, fixture.running()[1]->blocks.cached()));
  REQUIRE(fixture.scheduler.cancel(RequestId{"first"}));
  check_block_conservation(fixture.scheduler);
  CHECK(cached(fixture, lease) == 0);  // the second one uses them
  fixture.tick();
  REQUIRE(fixture.scheduler.cancel(RequestId{"second"}));
  check_block_conservation(fixture.scheduler);
  CHECK(cached(fixture, lease) == 2);
}

TEST_CASE("prefix cache: a rebind finds the cached blocks of prompt and emitted tokens") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  const auto first = run(fixture, fixture.request(lease, "r", 1, 20), numbered(20));
  CHECK(only<Token>(first.events).size() == 20);
  PromptRequest again = fixture.request(lease, "again", 1, 30);
  again.emitted.assign(20, 2);  // the token that the fixture draws
  again.rebound_from = LeaseId{9, 1};
  CHECK(run(fixture, again, numbered(20)).rows == 40 - 32);
}

TEST_CASE("prefix cache: cached blocks are evicted before the lease asks for growth") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 7);
  run(fixture, fixture.request(lease, "old"), numbered(70));
  REQUIRE(cached(fixture, lease) == 4);
  SECTION("by a prompt") {
    const auto next = run(fixture, fixture.request(lease, "next"), numbered(70, 1000));
    CHECK(only<Token>(next.events).size() == 3);
    CHECK(fixture.tenancies().prefix_counters().evictions == 3);
  }
  SECTION("by a sequence that grows") {
    const auto next = run(fixture, fixture.request(lease, "next", 1, 70), numbered(4, 1000));
    CHECK(only<Token>(next.events).size() == 70);
    CHECK(fixture.tenancies().prefix_counters().evictions == 3);
  }
  CHECK(fixture.tenancies().take_growth_requests().empty());
}

TEST_CASE("prefix cache: a prompt asks for the blocks that it lacks after eviction and hits") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 6);
  run(fixture, fixture.request(lease, "old"), numbered(70));
  submit(fixture, fixture.request(lease, "larger"),
         numbered(100));  // four cached blocks, three more, and a record
  CHECK(fixture.tick().empty());
  const auto growth = fixture.tenancies().take_growth_requests();
  REQUIRE(growth.size() == 1);
  CHECK(growth[0].blocks == 2);
  CHECK(cached(fixture, lease) == 4);  // nothing is evicted for a request that waits
  fixture.grow(lease, 2);
  fixture.tick();
  CHECK(fixture.row_count() == 100 - 64);
}

TEST_CASE("prefix cache: cached blocks count towards the quota and are evicted before it refuses") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  const LeaseId second = fixture.lease_of({"t1"}, 3, 40);
  fixture.limit_blocks(6);
  run(fixture, fixture.request(lease, "old"), numbered(70));
  REQUIRE(cached(fixture, lease) == 4);
  PromptRequest next = fixture.request(second, "next", 1, 20);
  next.tenant = {"t1"};
  CHECK(only<Token>(run(fixture, next, numbered(60, 1000)).events).size() == 20);
  CHECK(cached(fixture, lease) + cached(fixture, second) <= 6);
  CHECK(cached(fixture, lease) == 0);
}

TEST_CASE("prefix cache: a lowered quota evicts what is cached beyond it") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  run(fixture, fixture.request(lease, "old"), numbered(90));
  REQUIRE(cached(fixture, lease) == 5);
  fixture.limit_blocks(4);
  CHECK(cached(fixture, lease) == 4);
  CHECK(run(fixture, fixture.request(lease, "same", 1, 1), numbered(33)).rows == 33 - 32);
}

TEST_CASE("prefix cache: reclaimed extents lose their cached blocks, and running ones stay") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 3);
  fixture.grow(lease, 3);
  run(fixture, fixture.request(lease, "old"), numbered(70));
  REQUIRE(cached(fixture, lease) == 4);
  REQUIRE(fixture.tenancies().at(lease).pool.total_blocks() == 6);
  SECTION("all of them while nothing runs") {
    CHECK(fixture.scheduler.blocks().remove_free_extents(lease, 9).size() == 2);
    CHECK(fixture.tenancies().at(lease).prefixes.size() == 0);
  }
  SECTION("as many as the broker asked for") {
    CHECK(fixture.scheduler.blocks().remove_free_extents(lease, 0).empty());
    CHECK(fixture.scheduler.blocks().remove_free_extents(lease, 1).size() == 1);
    CHECK(fixture.tenancies().at(lease).pool.total_blocks() == 3);
  }
  SECTION("none that a sequence uses") {
    submit(fixture, fixture.request(lease, "warm", 1, 9), numbered(70));
    fixture.tick();
    CHECK(fixture.scheduler.blocks().remove_free_extents(lease, 9).empty());
  }
  check_block_conservation(fixture.scheduler);
}

TEST_CASE("prefix cache: the end of a lease drops its cached blocks") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  run(fixture, fixture.request(lease, "old"), numbered(70));
  fixture.revoke(lease);
  const LeaseId next{1, 2};
  fixture.add_lease(next, {"t1"}, 40);
  CHECK(run(fixture, fixture.request(next, "same"), numbered(70)).rows == 70);
  CHECK(fixture.tenancies().prefix_counters().misses == 8);  // those of the ended lease still count
}

TEST_CASE("prefix cache: a request that met a logit that is not finite leaves no block behind") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  submit(fixture, fixture.request(lease, "damaged", 1, 40), numbered(70));
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 1);
  end_damaged(fixture);
  CHECK(run(fixture, fixture.request(lease, "again"), numbered(70)).rows == 70);
}

TEST_CASE("prefix cache: text is held from the admission until its last cached block is gone") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  run(fixture, fixture.request(lease, "cold"), numbered(70));
  run(fixture, fixture.request(lease, "warm"), numbered(70));  // it computed no cached block
  run(fixture, fixture.request(lease, "short"), numbered(9, 1000));
  REQUIRE(cached(fixture, lease) == 4);
  CHECK(kv_changes(fixture) == Changes{"+cold", "+warm", "+short", "-short"});
  SECTION("evicted") {
    fixture.limit_blocks(1);
    CHECK(kv_changes(fixture).empty());
    fixture.limit_blocks(0);
    CHECK(kv_changes(fixture) == Changes{"-cold", "-warm"});
  }
  SECTION("reclaimed") {
    REQUIRE(fixture.scheduler.blocks().remove_free_extents(lease, 1).size() == 1);
    CHECK(kv_changes(fixture) == Changes{"-cold", "-warm"});
  }
  SECTION("gone with the lease") {
    fixture.revoke(lease);
    CHECK(kv_changes(fixture) == Changes{"-cold", "-warm"});
  }
  SECTION("damaged while another request uses them") {
    submit(fixture, fixture.request(lease, "damaged", 1, 40), numbered(70));
    fixture.tick();
    end_damaged(fixture);
    CHECK(kv_changes(fixture) == Changes{"+damaged", "-cold", "-warm", "-damaged"});
    fixture.limit_blocks(0);
    CHECK(kv_changes(fixture).empty());
  }
}

TEST_CASE("prefix cache: a block replaced by an equal one keeps the ids of both requests") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  for (const char* name : {"one", "two"}) {
    submit(fixture, fixture.request(lease, name), numbered(20));
  }
  while (fixture.scheduler.has_work()) fixture.tick();
  REQUIRE(cached(fixture, lease) == 1);
  CHECK(kv_changes(fixture) == Changes{"+one", "+two"});
  fixture.revoke(lease);
  CHECK(kv_changes(fixture) == Changes{"-one", "-two"});
}

TEST_CASE("prefix cache: what a tenant was served and what is cached is counted once") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40);
  const LeaseId second = fixture.lease_of({"t1"}, 3, 40);
  const LeaseId other = fixture.lease(2, 40);
  run(fixture, fixture.request(lease, "cold", 1, 1), numbered(70));
  run(fixture, fixture.request(lease, "warm", 1, 1), numbered(70));
  PromptRequest elsewhere = fixture.request(second, "elsewhere", 1, 1);
  elsewhere.tenant = {"t1"};
  run(fixture, elsewhere, numbered(40));
  run(fixture, fixture.request(other, "other", 1, 1), numbered(9));

  auto served = fixture.tenancies().take_served();
  REQUIRE(served.size() == 2);
  CHECK(served[0].tenant == TenantId{"t1"});
  CHECK(served[0].tokens == 70 + 6 + 40);
  CHECK(served[0].hit_blocks == 4);
  CHECK(served[0].hit_tokens == 64);
  CHECK(served[0].evicted_blocks == 0);
  CHECK(served[0].cross_tenant_hits == 0);
  CHECK(served[0].cached_blocks == 4 + 2);
  CHECK(served[1].tenant == TenantId{"t2"});
  CHECK(served[1].tokens == 9);
  CHECK(served[1].cached_blocks == 0);
  CHECK(fixture.tenancies().take_served().empty());
  fixture.limit_blocks(100);
  served = fixture.tenancies().take_served();  // the quota may be of another broker
  REQUIRE(served.size() == 1);
  CHECK(served[0].tokens == 0);
  CHECK(served[0].cached_blocks == 4 + 2);

  fixture.revoke(lease);
  served = fixture.tenancies().take_served();
  REQUIRE(served.size() == 1);
  CHECK(served[0].tokens == 0);
  CHECK(served[0].cached_blocks == 2);
  fixture.limit_blocks(1);
  fixture.revoke(second);
  served = fixture.tenancies().take_served();
  REQUIRE(served.size() == 1);
  CHECK(served[0].evicted_blocks == 1);
  CHECK(served[0].cached_blocks == 0);
  CHECK(fixture.tenancies().take_served().empty());
}

}  // namespace leasehold::testing
