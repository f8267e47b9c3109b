// Notifications to the agent of a cell, and quotas that name the limits of a cell.
#include <catch2/catch.hpp>
#include <utility>

#include "cell_world.hpp"
#include "common/random.hpp"
#include "ipc/control/tokens/api_key.hpp"

using namespace leasehold;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("cell: the agent is notified at once when workers have confirmed a lowered part") {
  CellWorld world;
  world.acquired("c");
  world.report_usage(3);
  world.forget_effects();
  world.admit({.concurrent = 1, .blocks = 64, .revision = 2});
  const auto told = [&] { return world.performed<effect::NotifyAgent>(); };
  REQUIRE(told().size() == 1);
  CHECK(told().front().agent == kAgent);
  CHECK_FALSE(told().front().changed.part.confirmed);
  world.report_usage(3);
  REQUIRE(told().size() == 2);
  const wire::CellPartChanged confirmed = told().back().changed;
  CHECK(confirmed.tenant == TenantId{"c"});
  CHECK(confirmed.part.revision == 2);
  CHECK(confirmed.part.confirmed);
  CHECK(confirmed.part.may_run == 3);
  world.report_usage(1);
  CHECK(told().back().changed.part.may_run == 1);
}

TEST_CASE("cell: the agent is notified of a demand that passes a power of two, and of no other") {
  CellWorld world;
  world.acquired("c");
  const auto told_after = [&](std::uint32_t running, std::uint32_t waiting) {
    world.forget_effects();
    world.report_usage(running, waiting);
    return world.performed<effect::NotifyAgent>().size();
  };
  CHECK(told_after(1, 0) == 1);
  CHECK(told_after(4, 5) == 1);
  CHECK(told_after(4, 6) == 0);
  CHECK(told_after(4, 12) == 0);
  CHECK(told_after(4, 13) == 1);
  CHECK(told_after(0, 0) == 1);
  world.post(ConnectionClosed{kAgent});
  CHECK(told_after(4, 0) == 0);
  world.attach(kLaterAgent);
  CHECK(told_after(0, 0) == 1);  // what the earlier agent heard last differs
}

TEST_CASE("cell: the agent is notified of requests between two reports, once a second") {
  CellWorld world;
  world.acquired("c");
  std::uint64_t admitted = 0;
  const auto told_after = [&](Duration time) {
    world.advance(time);
    world.forget_effects();
    world.report_usage(0, 0, ++admitted);
    return world.performed<effect::NotifyAgent>().size();
  };
  CHECK(told_after(seconds(1)) == 1);
  CHECK(told_after(milliseconds(999)) == 0);
  CHECK(told_after(milliseconds(1)) == 1);
  const wire::CellPart told = world.performed<effect::NotifyAgent>().front().changed.part;
  CHECK(told.uses == admitted + 1);  // the lease is one, too
}

TEST_CASE("cell: the agent is notified of requests that each have a lease of their own") {
  CellWorld world;
  std::uint64_t uses = 0;
  for (int i = 0; i < 3; ++i) {
    const LeaseId lease = world.acquired("c");
    if (i != 1) world.report_usage(0, 0, 1);  // the second request ends before the next report
    world.advance(seconds(1));
    world.forget_effects();
    world.call(kHolder, wire::LeaseRelease{.lease = lease});
    world.advance(milliseconds(1));
    CHECK(world.part().uses > std::exchange(uses, world.part().uses));
  }
}

TEST_CASE("cell: a request beyond the part may be accepted later, with a larger part") {
  CellWorld world;
  world.acquired("c");
  const auto most = [&](const char* tenant) {
    world.acquired(tenant);
    return world.performed<effect::SendQuota>().back().quota.request_blocks.value();
  };
  world.admit({.concurrent = 0, .blocks = 0, .revision = 2});
  CHECK(world.performed<effect::SendQuota>().back().quota.max_blocks == 0);
  CHECK(world.performed<effect::SendQuota>().back().quota.request_blocks.value() > 64);
  CHECK(most("a") <= world.state.tenants.find({"a"})->policy.max_blocks);
}

TEST_CASE("cell: a quota of its tenant says that the limits are those of a cell") {
  CellWorld world;
  world.admit({.revision = 2, .tokens = 600});
  world.acquired("c");
  CHECK(world.performed<effect::SendQuota>().back().quota.of_cell);
  world.acquired("a");
  CHECK_FALSE(world.performed<effect::SendQuota>().back().quota.of_cell);
}

TEST_CASE("cell: the keys of one tenant can be listed alone") {
  CellWorld world;
  for (const char* tenant : {"a", "c"}) {
    wire::KeyCreate create;
    create.tenant = {tenant};
    create.hash = hash_of_api_key(mint_api_key());
    create.request_id = {mint_request_id()};
    world.call(kAgent, create);
  }
  const auto keys = keys_of_tenant(world.state, {"c"}, world.clock.now());
  REQUIRE(keys.size() == 1);
  CHECK(keys.front().tenant == TenantId{"c"});
}

TEST_CASE("cell: a key beyond those that a host serves is refused with the cell's command") {
  CellWorld world;
  wire::KeyCreate key;
  key.tenant = {"c"};
  const auto create = [&] {
    key.request_id = {mint_request_id()};
    return world.call(kAgent, key);
  };
  for (std::size_t i = 0; i < ApiKeys::kMaxPerTenant; ++i) {
    key.hash = hash_of_api_key(mint_api_key());
    world.answer<wire::Empty>(create());
  }
  // The agent keeps a key that the broker has, to revoke it later.
  CHECK(world.refusal(create()) == Errc::BadRequest);
  key.hash = hash_of_api_key(mint_api_key());
  const CallId refused = create();
  CHECK(world.refusal(refused) == Errc::QuotaConcurrent);
  CHECK_THAT(world.error_of(refused).detail, Catch::Contains("brokerctl cell keys revoke"));
}
