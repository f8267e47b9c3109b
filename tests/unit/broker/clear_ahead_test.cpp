// How much memory the broker clears ahead of grants.
#include "broker/decide/memory/clear_ahead.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

constexpr std::uint64_t kNoLimit = 1ull << 40;

std::uint32_t capacity(const World& world) {
  return world.state.extents.capacity_extents();
}

/// For each creation of memory since `forget_effects`: whether it may stay idle.
std::vector<bool> created_idle(const World& world) {
  std::vector<bool> idle;
  for (const Effect& effect : world.effects)
    if (const auto* created = std::get_if<effect::CreateExtents>(&effect))
      idle.push_back(created->may_stay_idle);
  return idle;
}

}  // namespace

TEST_CASE(
    "clear ahead: cleared memory is for rebinds and growth, because a new lease may stay idle") {
  ServingWorld world;
  world.forget_effects();
  const LeaseId first = world.acquired("a", 8);
  CHECK(created_idle(world) == std::vector{true});

  world.forget_effects();
  world.call(kWorkerSocket, wire::LeaseGrow{.lease = first, .extents = 1});
  CHECK(created_idle(world) == std::vector{false});

  world.forget_effects();
  world.revoke(first);
  world.call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .replaces = first});
  CHECK(created_idle(world) == std::vector{false});
}

TEST_CASE("clear ahead: as many extents as the largest live lease has") {
  LeasedWorld world;
  CHECK(extents_to_clear(world.state, kNoLimit) == 1);
  world.admit_tenant("b");
  const LeaseId large = world.acquired("b", 17);
  CHECK(extents_to_clear(world.state, kNoLimit) == 3);

  world.revoke(large);

  CHECK(extents_to_clear(world.state, kNoLimit) == 1);
}

TEST_CASE("clear ahead: nothing without a live lease of a tenant") {
  World world;
  CHECK(extents_to_clear(world.state, kNoLimit) == 0);
  world.attach_worker("w0", kWorkerSocket);
  CHECK(extents_to_clear(world.state, kNoLimit) == 0);
}

TEST_CASE("clear ahead: at most what is free, so that the memory in use stays in the capacity") {
  LeasedWorld world;
  world.admit_tenant("b");
  const std::uint32_t most = world.state.extents.free_extents();
  world.acquired("b", 8 * (most - 1));
  REQUIRE(world.state.extents.free_extents() == 1);
  CHECK(extents_to_clear(world.state, kNoLimit) == 1);
  REQUIRE(capacity(world) > 2);
}

TEST_CASE("clear ahead: at most what the operator allows, in whole extents") {
  LeasedWorld world;
  world.admit_tenant("b");
  world.acquired("b", 17);
  CHECK(extents_to_clear(world.state, 5 * kMiB) == 2);
  CHECK(extents_to_clear(world.state, 0) == 0);
}

TEST_CASE("clear ahead: memory of a device is cleared by its agent") {
  BrokerConfig config = small_config();
  config.device = "cuda:0";
  LeasedWorld world(config);
  CHECK(extents_to_clear(world.state, kNoLimit) == 0);
}
