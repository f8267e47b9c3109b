// The worker of a lease died, and the broker keeps its memory for a time. An acquire that replaces
// the lease waits in the broker until a worker of the same name is ready, which adopts that memory.
#include <catch2/catch.hpp>

#include "tests/unit/broker/keeping_world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

TEST_CASE("adopt: an acquire waits for the successor of its worker, and is then granted") {
  KeepingWorld world;
  const CallId waiting = world.wait_for_successor();
  CHECK_FALSE(world.answers.contains(waiting));
  world.advance(1'999ms);
  CHECK_FALSE(world.answers.contains(waiting));
  world.attach("w0", kSuccessorSocket, "same");

  CHECK(world.answer<wire::LeaseAcquired>(waiting).adopted_blocks == 16);
}

TEST_CASE("adopt: an acquire waits for the successor 2 s at most, then it may retry in 20 ms") {
  KeepingWorld world;
  const CallId waiting = world.wait_for_successor();
  world.advance(2s);

  const Error& awaited = world.error_of(waiting);
  CHECK(awaited.code == Errc::NoModelLoaded);
  CHECK(awaited.retry_after_ms == 20);
  const CallId again = world.replace();
  CHECK_FALSE(world.answers.contains(again));
  world.attach("w0", kSuccessorSocket, "same");
  CHECK(world.answer<wire::LeaseAcquired>(again).adopted_blocks == 16);
}

TEST_CASE("adopt: a second acquire for the same lease is refused while the first one waits") {
  KeepingWorld world;
  const CallId first = world.wait_for_successor();
  CHECK(world.error_of(world.replace()).retry_after_ms == 20);
  CHECK_FALSE(world.answers.contains(first));
}

TEST_CASE("adopt: only an acquire that can adopt waits for a successor") {
  KeepingWorld world;
  world.kill_worker();

  wire::LeaseAcquire elsewhere{
      .tenant = {"a"}, .blocks = 8, .worker = "w9", .replaces = world.lease};
  CHECK(world.refusal(world.call(kHolder, elsewhere)) == Errc::UnknownWorker);
  CHECK(world.error_of(world.replace("b", kSecondHolder)).retry_after_ms == 0);
  world.advance(10s);  // the broker has freed the memory
  CHECK(world.error_of(world.replace()).retry_after_ms == 0);
}

TEST_CASE("adopt: a waiting acquire is refused once the lease's memory cannot be adopted") {
  KeepingWorld world;
  world.kill_worker();
  SECTION("because the broker has kept it for the whole grace") {
    world.advance(9s);
    const CallId waiting = world.replace();
    world.advance(1s);
    CHECK(world.refusal(waiting) == Errc::NoModelLoaded);
    CHECK(world.error_of(waiting).retry_after_ms == 0);
  }
  SECTION("because the holder of the lease has closed its connection") {
    const CallId waiting = world.replace();
    world.post(ConnectionClosed{kHolder});
    CHECK(world.refusal(waiting) == Errc::NoModelLoaded);
    CHECK(world.state.waiting.by_lease.empty());
  }
  SECTION("because the broker stops") {
    const CallId waiting = world.replace();
    world.post(Shutdown{});
    CHECK(world.refusal(waiting) == Errc::Draining);
  }
}

TEST_CASE("adopt: a waiting acquire is refused when its tenant is removed") {
  KeepingWorld world;
  const CallId waiting = world.wait_for_successor();

  world.call(kOperator, wire::TenantRemove{.tenant = {"a"}});

  CHECK(world.answers.contains(waiting));
  CHECK(world.state.waiting.by_lease.empty());
}

TEST_CASE(
    "adopt: a waiting acquire that is repeated on another connection makes that one the holder") {
  KeepingWorld world;
  world.kill_worker();
  const wire::LeaseAcquire acquire{
      .tenant = {"a"}, .blocks = 8, .replaces = world.lease, .request_id = {"repeated"}};
  const CallId first = world.call(kHolder, acquire);

  const CallId again = world.call(kSecondHolder, acquire);
  world.post(ConnectionClosed{kHolder});
  CHECK_FALSE(world.answers.contains(again));
  world.attach("w0", kSuccessorSocket, "same");

  const auto acquired = world.answer<wire::LeaseAcquired>(again);
  CHECK(acquired.adopted_blocks == 16);
  CHECK(world.record(acquired.lease).holder == kSecondHolder);
  CHECK(world.answers.contains(first));
}

TEST_CASE("adopt: two waiting acquires are each granted once their own worker has a successor") {
  KeepingWorld world;
  const ConnectionId other_socket{12};
  const AttachmentId other = world.attach("w1", other_socket, "same");
  const CallId on_other =
      world.call(kHolder, wire::LeaseAcquire{.tenant = {"b"}, .blocks = 8, .worker = "w1"});
  const LeaseId second = world.answer<wire::LeaseAcquired>(on_other).lease;
  world.kill_worker();
  world.post(ConnectionClosed{other_socket});
  world.post(WorkerExited{exit_of(other)});
  const CallId of_a = world.replace();
  const CallId of_b = world.call(
      kHolder,
      wire::LeaseAcquire{.tenant = {"b"}, .blocks = 8, .worker = "w1", .replaces = second});

  world.attach("w0", kSuccessorSocket, "same");

  CHECK(world.answer<wire::LeaseAcquired>(of_a).adopted_blocks == 16);
  CHECK_FALSE(world.answers.contains(of_b));
  world.advance(2s);
  CHECK(world.error_of(of_b).retry_after_ms == 20);
}
