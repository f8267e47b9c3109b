// When the broker's loop wakes up although no event arrives.
#include "broker/server/wakeups.hpp"

#include <catch2/catch.hpp>

#include "broker/server/connections/connection_admission.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kNow{1'000'000'000'000};

struct IdleWorld : World {
  AttachmentId worker;
  IdleWorld() : World(small_config(8s)), worker(attach_worker("w0", kWorkerSocket)) {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .max_blocks = 1024, .ttl_ms = 60'000});
  }
};

}  // namespace

TEST_CASE("wakeups: an idle broker without a service manager arms no timer") {
  Wakeups wakeups(std::nullopt);
  wakeups.status_changed();
  CHECK_FALSE(wakeups.next({}, kNow));
  CHECK_FALSE(wakeups.take_status_due(kNow));
}

TEST_CASE("wakeups: each reason to poll arms the timer") {
  const Wakeups wakeups(std::nullopt);
  const auto poll = kNow + Pulse::kPollInterval;
  CHECK(wakeups.next({.table_is_writable = true}, kNow) == poll);
  CHECK(wakeups.next({.awaits_timeout = true}, kNow) == poll);
  CHECK(wakeups.next({.connections_need_checks = true}, kNow) == poll);
}

TEST_CASE("wakeups: an idle broker wakes up for a third of its watchdog's interval only") {
  Wakeups wakeups(Wakeups::ServiceManager{.watchdog = 21s});
  REQUIRE(wakeups.take_status_due(kNow));
  CHECK(wakeups.next({}, kNow) == kNow + 7s);
  CHECK_FALSE(wakeups.take_status_due(kNow + 7s - 1ns));
  CHECK(wakeups.take_status_due(kNow + 7s));
  CHECK(wakeups.next({}, kNow + 7s) == kNow + 14s);
}

TEST_CASE("wakeups: changes of the status are sent once a second") {
  Wakeups wakeups(Wakeups::ServiceManager{});
  REQUIRE(wakeups.take_status_due(kNow));
  CHECK_FALSE(wakeups.next({}, kNow + 100s));
  for (int i = 0; i < 3; ++i) wakeups.status_changed();
  CHECK(wakeups.next({}, kNow) == kNow + 1s);
  CHECK(wakeups.next({}, kNow + 100s) == kNow + 100s);
  CHECK(wakeups.take_status_due(kNow + 1s));
  CHECK_FALSE(wakeups.take_status_due(kNow + 2s));
}

TEST_CASE("wakeups: a worker without work has no timeout, and one that owes a proof has") {
  IdleWorld world;
  CHECK_FALSE(awaits_timeout(world.state));
  const LeaseId lease = world.acquired("a", 16);
  CHECK_FALSE(awaits_timeout(world.state));

  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(lease);
  CHECK(awaits_timeout(world.state));
}

TEST_CASE("wakeups: a ping that is not answered, and a worker that may resume, are timed") {
  IdleWorld world;
  SECTION("ping") {
    world.workers_answer_pings = false;
    world.advance(2s);
    CHECK(awaits_timeout(world.state));
  }
  SECTION("resume") {
    world.restart(5s);
    CHECK(awaits_timeout(world.state));
  }
}

TEST_CASE("wakeups: connections are looked at until each has called or is closed") {
  RateLimits rates({});
  ConnectionAdmission admission(rates, {});
  CHECK_FALSE(admission.has_pending_checks());
  for (const std::uint64_t id : {1, 2, 3}) REQUIRE(admission.connected({id}, 7, kNow).is_admitted);
  admission.called({1});
  admission.called({1});
  admission.closed({2});
  CHECK(admission.has_pending_checks());
  CHECK(admission.take_silent(kNow + 10s).size() == 1);
  CHECK(admission.has_pending_checks());  // the report
  CHECK(admission.take_report(kNow + 10s));
  CHECK_FALSE(admission.has_pending_checks());
}

TEST_CASE("pulse: a loop that rested has not stalled, and is watched again afterwards") {
  Pulse pulse(kNow);
  pulse.rest();
  CHECK_FALSE(pulse.poll(kNow + 1000s));
  CHECK(pulse.poll(kNow + 2000s) == 1000s);
}
