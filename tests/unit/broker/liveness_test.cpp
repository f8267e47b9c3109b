// Workers that stand although nothing was taken back from them.
#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

BrokerConfig worker_timeout_config() {
  BrokerConfig config = small_config();
  config.worker_timeout = 8s;  // a look every two
  return config;
}

struct Watched : World {
  AttachmentId worker;
  Watched() : World(worker_timeout_config()), worker(attach_worker("w0", kWorkerSocket)) {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .max_blocks = 1024, .ttl_ms = 3'600'000});
  }
  /// The broker looks as often as it would.
  void pass(Duration time) {
    for (; time > Duration::zero(); time -= 1s) advance(1s);
  }
  std::size_t kills() const { return performed<effect::KillWorker>().size(); }
  std::vector<events::WorkerUnresponsive> overdue() const {
    std::vector<events::WorkerUnresponsive> found;
    for (const auto& each : performed<effect::AppendEvent>()) {
      if (const auto* e = std::get_if<events::WorkerUnresponsive>(&each.event)) found.push_back(*e);
    }
    return found;
  }
};

}  // namespace

TEST_CASE("signs of life: one that answers is asked again and again, and never killed") {
  Watched world;
  world.pass(100s);
  CHECK(world.performed<effect::SendPing>().size() == 50);
  CHECK(world.overdue().empty());
  CHECK(world.kills() == 0);
}

TEST_CASE("signs of life: a silent worker is warned of, then killed, and its lease is hung") {
  Watched world;
  const LeaseId lease = world.acquired("a");
  world.workers_answer_pings = false;

  world.pass(2s + 4s);
  REQUIRE(world.overdue().size() == 1);
  CHECK_FALSE(world.overdue()[0].killed);
  world.pass(3s);
  CHECK(world.kills() == 0);
  CHECK(world.record(lease).is(LeaseState::Live));
  CHECK(world.performed<effect::SendPing>().size() == 1);  // nothing piles up before it
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

TEST_CASE("signs of life: one that goes on before the end has lost nothing") {
  Watched world;
  const LeaseId lease = world.acquired("a");
  for (int round = 0; round < 5; ++round) {
    world.workers_answer_pings = false;
    world.pass(7s);
    world.workers_answer_pings = true;
    world.post(PingAnswered{world.worker});  // the answer to the ping it had missed
    world.pass(2s);
  }
  CHECK(world.kills() == 0);
  CHECK(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("signs of life: a broker that stood itself blames nobody") {
  Watched world;
  world.pass(2s);
  world.workers_answer_pings = false;
  world.pass(2s);
  world.advance(3600s);  // all that time it looked once
  world.workers_answer_pings = true;
  world.post(PingAnswered{world.worker});
  world.pass(10s);
  CHECK(world.kills() == 0);
}

TEST_CASE("signs of life: one that stands while it loads is no different") {
  World world(worker_timeout_config());
  world.workers_answer_pings = false;
  world.call(kWorkerSocket, wire::WorkerAttach{.worker = "w0"});
  for (int second = 0; second < 10; ++second) world.advance(1s);
  CHECK(world.performed<effect::KillWorker>().size() == 1);
}

TEST_CASE("signs of life: without timeout nobody is looked for") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  CHECK_FALSE(next_deadline(world.state));
}

TEST_CASE("signs of life: a growth that is never answered ends the worker, for it is hung") {
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

TEST_CASE("signs of life: a shrink that is never answered is no different") {
  Watched world;
  const LeaseId lease = world.acquired("a", 16);
  world.call(kHolder, wire::LeaseShrink{.lease = lease, .extents = 1});
  world.pass(8s);
  CHECK(world.kills() == 1);
}

TEST_CASE("signs of life: answers that come in time leave no debt") {
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

TEST_CASE("signs of life: a worker that comes back and delivers nothing more is killed") {
  Watched world;
  const LeaseId lease = world.acquired("a", 16);
  world.restart();
  world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker});
  world.pass(7s);
  world.call(kReturnSocket,
             wire::LeaseRedeliver{.lease = lease, .extents = {world.record(lease).extents[0]}});
  world.pass(7s);
  CHECK(world.kills() == 0);  // each delivery is a sign that it is at it
  world.pass(1s);
  CHECK(world.kills() == 1);
  CHECK(world.overdue().back().waiting_for == "delivery");
}

TEST_CASE(
    "signs of life: a worker that exits on its way back waiting_for no delivery, and no timer "
    "runs") {
  Watched world;
  world.acquired("a", 16);
  world.restart();
  world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker});

  world.post(WorkerExited{exit_of(world.worker)});

  world.pass(20s);
  CHECK_FALSE(next_deadline(world.state));
}
