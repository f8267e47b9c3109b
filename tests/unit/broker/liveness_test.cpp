// Workers that hang although none of their leases was revoked.
#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

/// One probe every two seconds.
constexpr Duration kWorkerTimeout = 8s;

struct Watched : World {
  AttachmentId worker;
  Watched() : World(small_config(kWorkerTimeout)), worker(attach_worker("w0", kWorkerSocket)) {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .max_blocks = 1024, .ttl_ms = 3'600'000});
  }
  /// Advances one second at a time, so no probe is late.
  void pass(Duration time) {
    for (; time > Duration::zero(); time -= 1s) advance(1s);
  }
  std::size_t kills() const { return performed<effect::KillWorker>().size(); }
  std::vector<events::WorkerUnresponsive> overdue() const {
    return recorded<events::WorkerUnresponsive>();
  }
};

}  // namespace

TEST_CASE("liveness: a worker that answers pings is never killed") {
  Watched world;
  world.pass(100s);
  CHECK(world.performed<effect::SendPing>().size() == 50);
  CHECK(world.overdue().empty());
  CHECK(world.kills() == 0);
}

TEST_CASE("liveness: a silent worker causes a warning, then is killed with WorkerHung") {
  Watched world;
  const LeaseId lease = world.acquired("a");
  world.workers_answer_pings = false;

  world.pass(2s + 4s);
  REQUIRE(world.overdue().size() == 1);
  CHECK_FALSE(world.overdue()[0].killed);
  world.pass(3s);
  CHECK(world.kills() == 0);
  CHECK(world.record(lease).is(LeaseState::Live));
  CHECK(world.performed<effect::SendPing>().size() ==
        1);  // no second ping before the first is answered
  world.pass(1s);

  CHECK(world.kills() == 1);
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::WorkerHung);
  REQUIRE(world.overdue().size() == 2);
  CHECK(world.overdue()[1].killed);
  CHECK(world.overdue()[1].waiting_for == "ping_reply");
  CHECK(world.refusal(world.acquire("a")) == Errc::NoModelLoaded);
  world.pass(100s);
  CHECK(world.kills() == 1);
}

TEST_CASE("liveness: a worker that answers before the timeout keeps its leases") {
  Watched world;
  const LeaseId lease = world.acquired("a");
  for (int round = 0; round < 5; ++round) {
    world.workers_answer_pings = false;
    world.pass(7s);
    world.workers_answer_pings = true;
    world.post(PingAnswered{world.worker});  // the late answer
    world.pass(2s);
  }
  CHECK(world.kills() == 0);
  CHECK(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("liveness: a broker that was suspended kills no worker") {
  Watched world;
  world.pass(2s);
  world.workers_answer_pings = false;
  world.pass(2s);
  world.advance(3600s);  // one probe in all that time
  world.workers_answer_pings = true;
  world.post(PingAnswered{world.worker});
  world.pass(10s);
  CHECK(world.kills() == 0);
}

TEST_CASE("liveness: a worker that hangs while loading is killed") {
  World world(small_config(kWorkerTimeout));
  world.workers_answer_pings = false;
  world.call(kWorkerSocket, wire::WorkerAttach{.worker = "w0"});
  for (int second = 0; second < 10; ++second) world.advance(1s);
  CHECK(world.performed<effect::KillWorker>().size() == 1);
}

TEST_CASE("liveness: without a timeout no pings are sent") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  CHECK_FALSE(next_deadline(world.state));
}

TEST_CASE("liveness: a worker that never answers a grow is killed") {
  Watched world;
  const LeaseId lease = world.acquired("a");
  world.workers_answer = false;
  world.call(kHolder, wire::LeaseGrow{.lease = lease, .extents = 1});
  const effect::SendGrant sent = world.grants.front();
  world.pass(7s);
  world.post(GrantAnswered{lease, sent.grant.extents, Error{Errc::TimedOut, "no answer"}});
  CHECK(world.kills() == 0);
  world.pass(1s);
  CHECK(world.kills() == 1);
  CHECK(world.overdue().back().waiting_for == "answer");
}

TEST_CASE("liveness: a worker that never answers a shrink is killed") {
  Watched world;
  const LeaseId lease = world.acquired("a", 16);
  world.call(kHolder, wire::LeaseShrink{.lease = lease, .extents = 1});
  world.pass(8s);
  CHECK(world.kills() == 1);
}

TEST_CASE("liveness: an answer in time ends the timeout") {
  Watched world;
  const LeaseId lease = world.acquired("a");
  world.workers_answer = false;
  for (int round = 0; round < 4; ++round) {
    world.call(kHolder, wire::LeaseGrow{.lease = lease, .extents = 1});
    world.pass(7s);
    world.answer_grant();
  }
  const CallId shrink = world.call(kHolder, wire::LeaseShrink{.lease = lease, .extents = 1});
  world.pass(7s);
  world.post(ReclaimAnswered{lease, shrink, std::vector{world.record(lease).extents.back()}});
  world.pass(60s);
  CHECK(world.kills() == 0);
  CHECK(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("liveness: a resumed worker that stops redelivering is killed") {
  Watched world;
  const LeaseId lease = world.acquired("a", 16);
  world.restart();
  world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker});
  world.pass(7s);
  world.call(kReturnSocket,
             wire::LeaseRedeliver{.lease = lease, .extents = {world.record(lease).extents[0]}});
  world.pass(7s);
  CHECK(world.kills() == 0);  // each redelivery restarts the timeout
  world.pass(1s);
  CHECK(world.kills() == 1);
  CHECK(world.overdue().back().waiting_for == "delivery");
}

TEST_CASE("liveness: a resuming worker that exits has no timeout any more") {
  Watched world;
  world.acquired("a", 16);
  world.restart();
  world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker});

  world.post(WorkerExited{exit_of(world.worker)});

  world.pass(20s);
  CHECK_FALSE(next_deadline(world.state));
}
