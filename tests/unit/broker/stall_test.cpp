// A broker that stalled restarts all timeouts.
#include <catch2/catch.hpp>

#include "broker/server/pulse.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

/// Timeouts: 2 s for a proof, five times as long for an unmap, 8 s for replies and pings.
struct WorkerTimeoutWorld : World {
  AttachmentId worker;
  LeaseId lease;
  WorkerTimeoutWorld() : World(small_config(8s)), worker(attach_worker("w0", kWorkerSocket)) {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .max_blocks = 1024, .ttl_ms = 60'000});
    lease = acquired("a", 16);
    workers_answer = false;
  }
  /// True if the worker is killed exactly after this time.
  bool is_killed_after(Duration timeout) {
    advance(timeout - 1ms);
    const bool sooner = !performed<effect::KillWorker>().empty();
    advance(1ms);
    return !sooner && performed<effect::KillWorker>().size() == 1;
  }
};

}  // namespace

TEST_CASE("pulse: a loop that missed ten polls has stalled") {
  Pulse pulse(TimePoint{0});
  TimePoint now{0};
  for (int turn = 0; turn < 100; ++turn) CHECK_FALSE(pulse.poll(now = now + Pulse::kPollInterval));
  CHECK_FALSE(pulse.poll(now = now + Pulse::kStallThreshold));
  CHECK(pulse.poll(now + Pulse::kStallThreshold + 1ns) == Pulse::kStallThreshold + 1ns);
}

TEST_CASE("broker stalled: the fence timeout restarts") {
  WorkerTimeoutWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  world.advance(1s);

  world.stall(40s);

  CHECK(world.performed<effect::KillWorker>().empty());
  CHECK(world.is_killed_after(2s));
}

TEST_CASE("broker stalled: the unmap timeout restarts") {
  WorkerTimeoutWorld world;
  world.revoke(world.lease);  // fenced at once
  REQUIRE(world.record(world.lease).is(LeaseState::Fenced));

  world.stall(40s);
  CHECK(world.performed<effect::KillWorker>().empty());
  world.workers_answer_pings = true;
  for (int second = 0; second < 9; ++second) world.advance(1s);
  CHECK(world.is_killed_after(1s));
}

TEST_CASE("broker stalled: the timeouts of calls and pings restart") {
  WorkerTimeoutWorld world;
  SECTION("answer") {
    world.call(kHolder, wire::LeaseGrow{.lease = world.lease, .extents = 1});
    world.stall(40s);
  }
  SECTION("sign of life") {
    world.workers_answer_pings = false;
    for (int second = 0; second < 9; ++second) world.advance(1s);
    REQUIRE(world.performed<effect::KillWorker>().empty());
    world.stall(1s);  // past the last probe
    for (int look = 0; look < 3; ++look) world.advance(2s);
  }
  CHECK(world.performed<effect::KillWorker>().empty());
  CHECK(world.record(world.lease).is(LeaseState::Live));
}

TEST_CASE("broker stalled: the reattach grace is extended by the stall") {
  WorkerTimeoutWorld world;
  world.restart(5s);
  world.advance(4s);

  world.stall(40s);

  CHECK(world.record(world.lease).is(LeaseState::Live));
  world.advance(999ms);
  world.answer<wire::WorkerAttached>(
      world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker}));
  world.stall(9s);  // the redelivery timeout restarts too
  CHECK(world.performed<effect::KillWorker>().empty());
}

TEST_CASE("broker stalled: an expired TTL stays expired") {
  WorkerTimeoutWorld world;
  world.stall(60s);
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::TtlExpired);
}

TEST_CASE("broker stalled: an orphaned worker keeps the deadlines it knows") {
  WorkerTimeoutWorld before;
  World after(before, {.table = false}, small_config(8s));
  after.stall(1s);
  after.advance(60s);  // one second after its last deadline
  CHECK(after.performed<effect::KillWorker>().empty());
  after.advance(1s);
  CHECK(after.performed<effect::KillWorker>().size() == 1);
}
