// A session whose worker is replaced by another one.
#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

/// Lease 1.1 is replaced by 1.2. Both workers share a socket.
struct FailoverWorld : World {
  FailoverWorld() {
    broker.answers["lease.acquire"] = {lease(1, 0), lease(9, 0)};
    broker.answers["lease.replace"] = {lease(2, 16)};
  }
  wire::Json lease(std::uint64_t generation, std::uint32_t adopted,
                   const std::string& arithmetic = "f32") const {
    return wire::LeaseAcquired{.lease = {1, generation},
                               .token = "v1:" + std::to_string(generation),
                               .address = directory / "worker.sock",
                               .worker = "w",
                               .arithmetic = arithmetic,
                               .deadline_boottime_ns = (timers.now() + 30s).boottime_ns,
                               .ttl_ms = 30'000,
                               .blocks = 16,
                               .adopted_blocks = adopted}
        .to_json();
  }
  void replace_worker() {
    broker.notify("lease.draining", {{"lease", "1.1"}, {"successor", "w2"}});
  }
  std::vector<wire::Json> submissions() const { return worker.calls("request.submit"); }
};

}  // namespace

TEST_CASE("failover: the request is submitted on the new worker with all tokens that came") {
  FailoverWorld world;
  world.stream(true);
  world.deliver(3);
  world.replace_worker();
  world.run_until([&] { return world.reported<Rebound>().size() == 1; });
  world.emit(3, 2);
  CHECK(world.completes());

  const auto asked = world.broker.calls("lease.replace");
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].at("lease") == "1.1");
  CHECK(asked[0].at("mode") == "failover");
  REQUIRE(world.submissions().size() == 2);
  CHECK(world.submissions()[1].at("token") == "v1:2");
  CHECK(world.submissions()[1].at("emitted").size() == 3);
  CHECK(world.submissions()[1].at("rebound_from") == "1.1");
  const Rebound rebound = world.reported<Rebound>()[0];
  CHECK(rebound.mode == wire::RebindMode::Failover);
  CHECK(rebound.new_lease == LeaseId{1, 2});
  CHECK(world.reported<Interrupted>().empty());
  CHECK(world.reported<Retrying>().empty());
  CHECK(world.session->tokens().size() == 5);
}

TEST_CASE("failover: later leases are acquired on the new worker, although the old one was named") {
  FailoverWorld world;
  world.named_worker = "w1";
  world.stream(true);
  world.replace_worker();
  world.run_until([&] { return world.reported<Rebound>().size() == 1; });
  world.revoke({1, 2});
  world.timers.advance(1s);
  world.run_until([&] { return world.reported<Rebound>().size() == 2; });
  REQUIRE(world.broker.calls("lease.acquire").size() == 2);
  CHECK(world.broker.calls("lease.acquire")[0].at("worker") == "w1");
  CHECK(world.broker.calls("lease.acquire")[1].at("worker") == "w");
}

TEST_CASE("failover: the end of the stream waits for the broker's reply") {
  FailoverWorld world;
  world.stream(true);
  world.emit(0, 3);
  // The old lease ends before the reply.
  world.run_until([&] { return world.session->tokens().size() == 3; });
  world.replace_worker();
  world.complete_revoked({1, 1});
  world.run_until([&] { return world.reported<Rebound>().size() == 1; });
  CHECK(world.completes());
  CHECK(world.broker.calls("lease.acquire").size() == 1);
  CHECK(world.reported<Retrying>().empty());
}

TEST_CASE("failover: refused, the stream goes on, and is rebound once its lease ends") {
  FailoverWorld world;
  world.broker.answers["lease.replace"] = {fail(Errc::IllegalTransition, "int8")};
  world.stream(true);
  world.replace_worker();
  world.run_until([&] { return world.broker.calls("lease.replace").size() == 1; });
  world.settle();
  world.deliver(2);
  world.revoke({1, 1});
  world.timers.advance(1s);
  world.run_until([&] { return world.reported<Rebound>().size() == 1; });
  CHECK(world.reported<Rebound>()[0].mode == wire::RebindMode::Reprefill);
  CHECK(world.reported<Rebound>()[0].new_lease == LeaseId{1, 9});
}

TEST_CASE("failover: a temporary refusal is tried again") {
  FailoverWorld world;
  world.broker.answers["lease.replace"].push_front(fail(Errc::PoolExhausted, "later"));
  world.stream(true);
  world.replace_worker();
  world.run_until([&] { return world.broker.calls("lease.replace").size() == 1; });
  world.settle();
  world.timers.advance(50ms);
  world.run_until([&] { return world.reported<Rebound>().size() == 1; });
  CHECK(world.reported<Rebound>()[0].mode == wire::RebindMode::Failover);
}

TEST_CASE(
    "failover: notified before the worker accepts the request, the session moves afterwards") {
  FailoverWorld world;
  world.start(true);
  world.broker.after_answer = [&world](const std::string& method, const wire::Json&) {
    if (method == "lease.acquire") world.replace_worker();
  };
  world.run_until([&] { return world.reported<Rebound>().size() == 1; });
  CHECK(world.reported<Rebound>()[0].mode == wire::RebindMode::Failover);
}

TEST_CASE("failover: a text never continues silently in another arithmetic") {
  FailoverWorld world;
  world.any_arithmetic = GENERATE(false, true);
  world.broker.answers["lease.replace"] = {world.lease(2, 0, "int8")};
  world.stream(true);
  world.deliver(3);
  world.replace_worker();
  if (!world.any_arithmetic) {
    CHECK(world.end().error->code == Errc::UnknownWorker);
    return;
  }
  world.run_until([&] { return world.reported<Rebound>().size() == 1; });
  CHECK(world.broker.calls("lease.replace")[0].at("any_arithmetic") == true);
  CHECK(world.reported<Rebound>()[0].other_arithmetic == "int8");
}

TEST_CASE("failover: a request that is whole waits for its end on the old worker") {
  FailoverWorld world;
  world.request.max_emitted_tokens = 3;
  world.stream(true);
  world.deliver(3);
  world.replace_worker();
  world.run_until([&] { return world.broker.calls("lease.replace").size() == 1; });
  world.settle();
  world.complete_revoked({1, 1});
  CHECK(world.end().reason == "MaxTokensReached");
  CHECK(world.submissions().size() == 1);
}
