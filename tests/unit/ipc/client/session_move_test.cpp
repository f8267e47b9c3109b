// A session that moves its request to a second lease before the first one ends.
#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

/// Leases 1.1 to 1.9 of a lifetime of 2 s each, counted from the clock's 0 and from each
/// replacement.
struct MoveWorld : World {
  MoveWorld() {
    broker.answers["lease.acquire"] = {lease(1, 2s)};
    for (std::uint64_t generation = 2; generation < 10; ++generation) {
      broker.answers["lease.replace"].push_back(
          lease(generation, 1500ms + 2s + 1500ms * (generation - 2)));
    }
    worker.answers["request.move"] = {
        wire::RequestMoved{.request = {"any"}, .lease = {1, 2}, .blocks = 3}.to_json()};
  }
  wire::Json lease(std::uint64_t generation, Duration last) const {
    return wire::LeaseAcquired{.lease = {1, generation},
                               .token = "v1:" + std::to_string(generation),
                               .address = directory / "worker.sock",
                               .worker = "w",
                               .deadline_boottime_ns = (timers.now() + last).boottime_ns,
                               .ttl_ms = 3'000,
                               .blocks = 16,
                               .last_deadline_boottime_ns = (timers.now() + last).boottime_ns}
        .to_json();
  }
  void until_moved(std::size_t times) {
    run_until([&] { return reported<Rebound>().size() == times; });
  }
  void drain(const std::string& lease) { broker.notify("lease.draining", {{"lease", lease}}); }
};

}  // namespace

TEST_CASE("move: before the last deadline the request moves, and the stream goes on") {
  MoveWorld world;
  world.stream(true);
  world.emit(0, 3);
  world.timers.advance(1'499ms);
  world.settle();
  CHECK(world.broker.calls("lease.replace").empty());
  world.timers.advance(1ms);
  world.until_moved(1);
  world.emit(3, 2);
  CHECK(world.completes());

  CHECK(world.broker.calls("lease.replace")[0].at("lease") == "1.1");
  CHECK(world.broker.calls("lease.replace")[0].at("mode") == "preemptive");
  CHECK(world.worker.calls("request.move")[0].at("token") == "v1:2");
  CHECK(world.worker.calls("request.submit").size() == 1);
  CHECK(world.broker.calls("lease.release")[0].at("lease") == "1.1");
  const Rebound moved = world.reported<Rebound>()[0];
  CHECK(moved.old_lease == LeaseId{1, 1});
  CHECK(moved.new_lease == LeaseId{1, 2});
  CHECK(moved.mode == wire::RebindMode::Preemptive);
  CHECK(world.session->tokens().size() == 5);
  CHECK(world.reported<TokenArrived>()[2].lease == LeaseId{1, 1});
  CHECK(world.reported<TokenArrived>()[3].lease == LeaseId{1, 2});
}

TEST_CASE("move: each lease is replaced in turn") {
  MoveWorld world;
  world.stream(true);
  for (std::size_t times = 1; times <= 4; ++times) {
    world.timers.advance(1'500ms);
    world.until_moved(times);
  }
  CHECK(world.broker.calls("lease.replace")[3].at("lease") == "1.4");
  CHECK(world.broker.calls("lease.acquire").size() == 1);
}

TEST_CASE("move: a lease that an operator drains is replaced at once, as a checkpoint") {
  MoveWorld world;
  world.stream(true);
  world.deliver(1);
  world.broker.notify("lease.draining", {{"lease", "1.7"}});  // another one
  world.drain("1.1");
  world.until_moved(1);
  CHECK(world.broker.calls("lease.replace").size() == 1);
  CHECK(world.reported<Rebound>()[0].mode == wire::RebindMode::Checkpoint);
}

TEST_CASE("move: without --rebind, and in mode reprefill, no lease is replaced") {
  MoveWorld world;
  world.moves = GENERATE(true, false);
  world.stream(!world.moves);
  world.drain("1.1");
  world.timers.advance(1'900ms);
  world.settle();
  CHECK(world.broker.calls("lease.replace").empty());
}

TEST_CASE("move: a refused replacement is tried again, unless the refusal is final") {
  MoveWorld world;
  const bool is_final = GENERATE(false, true);
  const Errc code = is_final ? Errc::IllegalTransition : Errc::PoolExhausted;
  world.broker.answers["lease.replace"].push_front(fail(code, "no"));
  world.stream(true);
  world.timers.advance(1'500ms);
  world.run_until([&] { return world.broker.calls("lease.replace").size() == 1; });
  world.settle();
  world.timers.advance(50ms);
  if (is_final) {
    world.settle();
    CHECK(world.broker.calls("lease.replace").size() == 1);
  } else {
    world.until_moved(1);
  }
  CHECK(world.session->state() == TenantSession::State::Streaming);
}

TEST_CASE("move: a request that cannot move is submitted again under the new lease it holds") {
  MoveWorld world;
  world.worker.answers["request.move"] = {fail(Errc::LeaseRevoked, "no")};
  world.stream(true);
  world.emit(0, 3);
  world.timers.advance(1'500ms);
  world.run_until([&] { return world.worker.calls("request.move").size() == 1; });
  world.settle();
  world.emit(3, 1);  // the stream goes on
  world.complete_revoked({1, 1});
  world.run_until([&] { return !world.reported<Retrying>().empty(); });
  world.timers.advance(1s);
  world.until_moved(1);
  CHECK(world.broker.calls("lease.acquire").size() == 1);
  CHECK(world.worker.calls("request.submit")[1].at("token") == "v1:2");
  CHECK(world.worker.calls("request.submit")[1].at("emitted").size() == 4);
  CHECK(world.reported<Rebound>()[0].mode == wire::RebindMode::Reprefill);
}

TEST_CASE("move: a lease that ends before its replacement is granted waits for that one") {
  MoveWorld world;
  world.broker.held = "lease.replace";
  world.stream(true);
  world.timers.advance(1'500ms);
  world.run_until([&] { return world.broker.calls("lease.replace").size() == 1; });
  world.revoke({1, 1});
  SECTION("which comes after the retry") {
    world.timers.advance(0ns);
    world.settle();
    world.broker.answer_held();
  }
  SECTION("which comes before the retry") {
    world.broker.answer_held();
    world.run_until([&] { return world.reported<Acquired>().size() == 2; });
    world.timers.advance(0ns);
  }
  world.until_moved(1);
  CHECK(world.completes());
  CHECK(world.broker.calls("lease.acquire").size() == 1);
  CHECK(world.worker.calls("request.submit")[1].at("token") == "v1:2");
  CHECK(world.reported<Rebound>()[0].mode == wire::RebindMode::Reprefill);
}

TEST_CASE("move: a lease that ends before its replacement is refused is rebound by an acquire") {
  MoveWorld world;
  world.broker.held = "lease.replace";
  world.broker.answers["lease.replace"] = {fail(Errc::PoolExhausted, "no")};
  world.broker.answers["lease.acquire"].push_back(world.lease(9, 9s));
  world.stream(true);
  world.timers.advance(1'500ms);
  world.run_until([&] { return world.broker.calls("lease.replace").size() == 1; });
  world.revoke({1, 1});
  world.timers.advance(0ns);
  world.settle();
  CHECK(world.broker.calls("lease.acquire").size() == 1);
  world.broker.answer_held();
  world.until_moved(1);
  CHECK(world.broker.calls("lease.acquire")[1].at("replaces") == "1.1");
}

TEST_CASE("move: a broker that is away when a replacement is due is asked once it is back") {
  MoveWorld world;
  world.stream(true);
  world.timers.advance(1'490ms);
  world.broker.drop_connections();
  world.run_until([&] { return world.reported<BrokerDisconnected>().size() == 1; });
  world.timers.advance(10ms);  // the replacement is due
  world.settle();
  CHECK(world.broker.calls("lease.replace").empty());
  world.timers.advance(10ms);  // the holder reconnects
  world.run_until([&] { return world.broker.calls("lease.renew").size() == 1; });
  world.timers.advance(40ms);
  world.until_moved(1);
}

TEST_CASE("move: after the loss of a worker the acquire names the lease that has the text") {
  MoveWorld world;
  world.broker.answers["lease.acquire"].push_back(world.lease(9, 9s));
  world.worker.held = "request.move";
  world.request.resumable = GENERATE(false, true);
  world.stream(true);
  world.timers.advance(1'500ms);
  world.run_until([&] { return world.worker.calls("request.move").size() == 1; });
  world.request.resumable ? world.worker.vanish() : world.worker.drop_connections();
  for (std::size_t retries = 1; world.broker.calls("lease.acquire").size() < 2; ++retries) {
    world.run_until([&] { return world.reported<Retrying>().size() == retries; });
    world.timers.advance(world.reported<Retrying>().back().delay);
    world.settle();
  }
  CHECK(world.broker.calls("lease.acquire")[1].at("replaces") == "1.1");
}

TEST_CASE("move: a stream that a worker resumed under the new lease is rebound from that one") {
  MoveWorld world;
  world.broker.answers["lease.acquire"].push_back(world.lease(9, 9s));
  world.worker.held = "request.move";
  world.worker.answers["request.resume"] = {
      wire::RequestSubmitted{.request = {"any"}, .prompt_tokens = 4}.to_json()};
  world.request.resumable = true;
  world.stream(true);
  world.timers.advance(1'500ms);
  world.run_until([&] { return world.worker.calls("request.move").size() == 1; });
  world.worker.drop_connections();
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  world.timers.advance(50ms);
  world.until_moved(1);
  world.revoke({1, 2});
  world.timers.advance(1s);
  world.until_moved(2);
  CHECK(world.broker.calls("lease.acquire")[1].at("replaces") == "1.2");
}
