// Blocks for sequences, and the cached blocks that make room for them.
#include "worker/schedule/memory/kv_allocator.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {

TEST_CASE("kv allocator: cached blocks are evicted before a sequence lacks blocks") {
  PartsFixture test;
  Tenancy& tenancy = test.lease(1, 4);
  test.end_cached(test.run(tenancy, "ended", 48, 48));
  REQUIRE(tenancy.prefixes.unused() == 3);
  Sequence& sequence = test.run(tenancy, "new", 60, 0);
  CHECK_FALSE(test.kv.reserve_rows(sequence, 60));
  CHECK(tenancy.prefixes.size() == 0);
  CHECK(tenancy.pool.free_blocks() == 0);
}

TEST_CASE("kv allocator: a text is reported as not held once, when its last cached block leaves") {
  PartsFixture test;
  Tenancy& tenancy = test.lease(1, 4);
  test.end_cached(test.run(tenancy, "ended", 48, 48));
  CHECK(test.kv.take_changes().empty());
  test.kv.evict(tenancy, 2);
  CHECK(test.kv.take_changes().empty());
  test.kv.evict(tenancy, 1);
  const std::vector<KvChange> changes = test.kv.take_changes();
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].engine_request_id == RequestId{"ended"});
  CHECK_FALSE(changes[0].is_held);
}

TEST_CASE("kv allocator: a sequence without its next block asks for growth one block ahead") {
  PartsFixture test;
  Tenancy& tenancy = test.lease(1, 1);
  Sequence& sequence = test.run(tenancy, "grows", 17, 16);
  const auto starved = test.kv.reserve_rows(sequence, 1);
  REQUIRE(starved);
  CHECK(starved->blocks == 1);
  CHECK_FALSE(starved->over_quota);
  CHECK(tenancy.growth.wanted() == 2);
}

TEST_CASE("kv allocator: blocks above the quota are neither taken nor asked for") {
  PartsFixture test;
  Tenancy& tenancy = test.lease(1, 8, 2);
  Sequence& sequence = test.run(tenancy, "large", 48, 0);
  const auto starved = test.kv.reserve_rows(sequence, 48);
  REQUIRE(starved);
  CHECK(starved->over_quota);
  CHECK(tenancy.growth.wanted() == 0);
  CHECK(tenancy.pool.held_blocks() == 0);
}

TEST_CASE("kv allocator: a proposal leaves each running sequence its next block") {
  PartsFixture test;
  Tenancy& roomy = test.lease(1, 3);
  CHECK(test.kv.reserve_proposed(test.run(roomy, "one", 17, 16), 1));
  Tenancy& tight = test.lease(2, 2);
  CHECK_FALSE(test.kv.reserve_proposed(test.run(tight, "two", 17, 16), 1));
  CHECK(tight.growth.wanted() == 0);
}

}  // namespace leasehold::testing
