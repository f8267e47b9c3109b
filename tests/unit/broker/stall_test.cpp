// A broker that was itself stopped judges nobody for the time in which it could hear nobody.
#include <catch2/catch.hpp>

#include "broker/server/pulse.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

/// Patience: 2 s for proof, five times as long for an unmap, 8 s for answers and signs of life.
struct WorkerTimeoutWorld : World {
  AttachmentId worker;
  LeaseId lease;
  WorkerTimeoutWorld() : World(config()), worker(attach_worker("w0", kWorkerSocket)) {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .max_blocks = 1024, .ttl_ms = 60'000});
    lease = acquired("a", 16);
    workers_answer = false;
  }
  static BrokerConfig config() {
    BrokerConfig config = small_config();
    config.worker_timeout = 8s;
    return config;
  }
  /// True when it is killed at the end of this time and not a moment sooner.
  bool is_killed_after(Duration timeout) {
    advance(timeout - 1ms);
    const bool sooner = !performed<effect::KillWorker>().empty();
    advance(1ms);
    return !sooner && performed<effect::KillWorker>().size() == 1;
  }
};

}  // namespace

TEST_CASE("pulse: a loop that turns at its poll never stalled, one that missed ten did") {
  Pulse pulse(TimePoint{0});
  TimePoint now{0};
  for (int turn = 0; turn < 100; ++turn) CHECK_FALSE(pulse.poll(now = now + Pulse::kPollInterval));
  CHECK_FALSE(pulse.poll(now = now + Pulse::kStallThreshold));
  CHECK(pulse.poll(now + Pulse::kStallThreshold + 1ns) == Pulse::kStallThreshold + 1ns);
}

TEST_CASE("broker stalled: proof that was owed meanwhile is owed from now on") {
  WorkerTimeoutWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  world.advance(1s);

  world.stall(40s);

  CHECK(world.performed<effect::KillWorker>().empty());
  CHECK(world.is_killed_after(2s));
}

TEST_CASE("broker stalled: an unmap is waited for as long again") {
  WorkerTimeoutWorld world;
  world.revoke(world.lease);  // quiet at once
  REQUIRE(world.record(world.lease).is(LeaseState::Fenced));

  world.stall(40s);
  CHECK(world.performed<effect::KillWorker>().empty());
  world.workers_answer_pings = true;
  for (int second = 0; second < 9; ++second) world.advance(1s);
  CHECK(world.is_killed_after(1s));
}

TEST_CASE("broker stalled: so is an answer, and who had been silent is looked for anew") {
  WorkerTimeoutWorld world;
  SECTION("answer") {
    world.call(kHolder, wire::LeaseGrow{.lease = world.lease, .extents = 1});
    world.stall(40s);
  }
  SECTION("sign of life") {
    world.workers_answer_pings = false;
    for (int second = 0; second < 9; ++second) world.advance(1s);
    REQUIRE(world.performed<effect::KillWorker>().empty());
    world.stall(1s);  // over the last look
    for (int look = 0; look < 3; ++look) world.advance(2s);
  }
  CHECK(world.performed<effect::KillWorker>().empty());
  CHECK(world.record(world.lease).is(LeaseState::Live));
}

TEST_CASE("broker stalled: workers of before its restart have their whole grace to come back") {
  WorkerTimeoutWorld world;
  world.restart(5s);
  world.advance(4s);

  world.stall(40s);

  CHECK(world.record(world.lease).is(LeaseState::Live));
  world.advance(999ms);
  world.answer<wire::WorkerAttached>(
      world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker}));
  world.stall(9s);  // and one that delivers has not stopped delivering
  CHECK(world.performed<effect::KillWorker>().empty());
}

TEST_CASE("broker stalled: a lease that ran out meanwhile has run out") {
  WorkerTimeoutWorld world;
  world.stall(60s);
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::TtlExpired);
}

TEST_CASE("broker stalled: an orphan still has the deadlines it obeys") {
  WorkerTimeoutWorld before;
  World after(before, {.table = false}, WorkerTimeoutWorld::config());
  after.stall(1s);
  after.advance(60s);  // its last deadline is a second ago
  CHECK(after.performed<effect::KillWorker>().empty());
  after.advance(1s);
  CHECK(after.performed<effect::KillWorker>().size() == 1);
}
