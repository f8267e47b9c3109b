/// Rebinds that wait for memory in turn: the oldest first, without taking from what runs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kExtentBlocks = 8;  ///< Blocks; 16 extents in all.

/// Tenants "a", "b" and "c" have lost a lease of four extents each, and "full" holds all memory.
struct TurnsWorld : ServingWorld {
  TurnsWorld() {
    for (const char* name : {"b", "c", "full"}) admit_tenant(name);
    for (const char* name : {"a", "b", "c"}) lost[name] = acquired(name, 4 * kExtentBlocks);
    for (const auto& [name, lease] : lost) revoke(lease);
    for (int i = 0; i < 4; ++i) held.push_back(acquired("full", 4 * kExtentBlocks));
  }
  Result<Answer> rebind(const std::string& name, ConnectionId connection = kHolder) {
    return answers.at(call(
        connection, wire::LeaseAcquire{
                        .tenant = {name}, .blocks = 4 * kExtentBlocks, .replaces = lost.at(name)}));
  }
  Result<Answer> begin(const std::string& name, std::uint32_t extents) {
    return answers.at(acquire(name, extents * kExtentBlocks));
  }
  void free_one() {
    revoke(held.back());
    held.pop_back();
  }
  std::map<std::string, LeaseId> lost;
  std::vector<LeaseId> held;
};

bool waits(const Result<Answer>& answer) {
  return !answer && answer.error().code == Errc::PoolExhausted && answer.error().retry_after_ms > 0;
}

bool is_turned_away(const Result<Answer>& answer) {
  return !answer && answer.error().code == Errc::PoolExhausted &&
         answer.error().retry_after_ms == 0;
}

}  // namespace

TEST_CASE("turns: a rebind that finds no memory waits, and learns how many wait before it") {
  TurnsWorld world;
  const auto first = world.rebind("a");
  REQUIRE(waits(first));
  CHECK(first.error().detail.contains("0 rebinds wait before this one"));
  const auto second = world.rebind("b");
  REQUIRE(waits(second));
  CHECK(second.error().detail.contains("1 rebinds wait before this one"));
  CHECK(second.error().retry_after_ms > first.error().retry_after_ms);
  CHECK(is_turned_away(world.begin("c", 1)));  // replaces no lease
}

TEST_CASE("turns: the oldest rebind gets the memory that returns, in any order of calls") {
  TurnsWorld world;
  REQUIRE(waits(world.rebind("a")));
  REQUIRE(waits(world.rebind("b")));
  world.free_one();
  CHECK(waits(world.rebind("b")));
  CHECK(waits(world.rebind("c")));
  CHECK(is_turned_away(world.begin("full", 1)));
  CHECK(world.rebind("a"));
  world.free_one();
  CHECK(waits(world.rebind("c")));
  CHECK(world.rebind("b"));
  world.free_one();
  CHECK(world.rebind("c"));
  CHECK(world.state.places.size() == 0);
}

TEST_CASE("turns: what is free beyond the memory that rebinds wait for is granted") {
  TurnsWorld world;
  REQUIRE(waits(world.rebind("a")));
  world.free_one();
  world.free_one();
  CHECK(is_turned_away(world.begin("full", 5)));
  CHECK(world.begin("full", 4));
  CHECK(world.rebind("a"));
}

TEST_CASE("turns: a place outlives the connection, and ends once it is not asked for") {
  TurnsWorld world;
  REQUIRE(waits(world.rebind("a", ConnectionId{9})));
  world.post(ConnectionClosed{ConnectionId{9}});
  REQUIRE(waits(world.rebind("b", ConnectionId{3})));
  world.advance(RebindPlaces::kPlaceTimeout - 1ms);
  REQUIRE(waits(world.rebind("a", ConnectionId{4})));
  REQUIRE(waits(world.rebind("b", ConnectionId{3})));
  world.free_one();
  CHECK(waits(world.rebind("b", ConnectionId{3})));
  world.advance(RebindPlaces::kPlaceTimeout - 1ms);
  CHECK(waits(world.rebind("b", ConnectionId{3})));  // "a" has its place for 1 ms more
  world.advance(1ms);
  CHECK(world.rebind("b", ConnectionId{3}));
}

TEST_CASE("turns: running leases grow past rebinds that wait") {
  TurnsWorld world;
  REQUIRE(waits(world.rebind("a")));
  world.free_one();
  const auto grown =
      world.answers.at(world.call(kHolder, wire::LeaseGrow{.lease = world.held[0], .extents = 1}));
  CHECK(grown);
  CHECK(waits(world.rebind("a")));  // three extents are left
}

TEST_CASE("turns: an acquire within a guaranteed reserve and a better tier do not wait") {
  TurnsWorld world;
  world.call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .tier = wire::Tier::Scavenger});
  REQUIRE(waits(world.rebind("a")));
  world.free_one();
  world.call(kOperator, wire::TenantAdmit{.tenant = {"c"},
                                          .reserved_blocks = kExtentBlocks,
                                          .tier = wire::Tier::Guaranteed});
  SECTION("the place of a scavenger is before other scavengers only") {
    CHECK(world.begin("b", 3));
  }
  SECTION("a reserve is the tenant's own") {
    REQUIRE(waits(world.rebind("b")));
    CHECK(world.begin("c", 1));
  }
}

TEST_CASE("turns: a place counts no more than the lease had, and only of leases that have ended") {
  TurnsWorld world;
  const auto greedy = world.answers.at(world.call(
      kHolder, wire::LeaseAcquire{
                   .tenant = {"a"}, .blocks = 16 * kExtentBlocks, .replaces = world.lost.at("a")}));
  REQUIRE(waits(greedy));
  world.free_one();
  world.free_one();
  CHECK(world.begin("b", 4));
  const auto living = world.answers.at(world.call(
      kHolder,
      wire::LeaseAcquire{.tenant = {"full"}, .blocks = 64 * 8, .replaces = world.held[0]}));
  CHECK_FALSE(waits(living));
}

TEST_CASE("turns: places are bounded, and shared by tenants") {
  RebindPlaces places(false);
  const TimePoint now{1};
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < 2 * RebindPlaces::kMaxPlaces; ++i)
    kept += places.keep({.tenant = {"a"}, .replaces = LeaseId{i, 1}, .extents = 1}, now) ? 1 : 0;
  CHECK(kept == RebindPlaces::kMaxPlaces / 2);
  CHECK(places.keep({.tenant = {"b"}, .replaces = LeaseId{1, 1}, .extents = 1}, now));
  CHECK(places.before({.tenant = {"c"}}, now).count == kept + 1);
  CHECK(places.before({.tenant = {"c"}}, now + RebindPlaces::kPlaceTimeout).count == 0);
  CHECK(places.size() == 0);
}

TEST_CASE("turns: over random releases every rebind is served in the order in which it came") {
  const std::uint64_t seed = testing::test_seed();
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 50; ++round) {
    TurnsWorld world;
    std::vector<std::string> waiting{"a", "b", "c"};
    std::ranges::shuffle(waiting, std::mt19937_64(random.below(1'000'000)));
    for (const std::string& name : waiting) REQUIRE(waits(world.rebind(name)));
    std::vector<std::string> served;
    for (int step = 0; served.size() < 3; ++step) {
      REQUIRE(step < 1'000);
      if (random.below(8) == 0 && !world.held.empty()) world.free_one();
      const std::string& name = waiting.at(random.below(3));
      const bool is_served = std::ranges::find(served, name) != served.end();
      if (!is_served && world.rebind(name)) served.push_back(name);
      if (random.below(4) == 0) CHECK_FALSE(world.begin("full", 1));
      world.advance(std::chrono::milliseconds(random.below(20)));
      for (const std::string& each : waiting)
        if (std::ranges::find(served, each) == served.end() && world.rebind(each))
          served.push_back(each);
    }
    CHECK(served == waiting);
  }
}
