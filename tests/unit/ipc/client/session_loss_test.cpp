// A session that loses its worker or broker in mid-stream.
#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

void stream(World& world, bool rebind) {
  world.stream(rebind);
  world.deliver(2);
}

/// The connection to the worker breaks, and the session submits or resumes the request again.
void reconnect(World& world) {
  world.worker.drop_connections();
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  world.timers.advance(50ms);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
}

}  // namespace

TEST_CASE("loss: without rebind a lost worker ends the stream with ConnectionLost") {
  World world;
  stream(world, false);
  world.worker.vanish();

  const Ended ended = world.end();

  CHECK(ended.error->code == Errc::ConnectionLost);
  CHECK(ended.delivered_tokens == 2);
  CHECK(world.broker.calls("lease.release").size() == 1);
}

TEST_CASE("loss: with rebind a returning worker gets the delivered tokens") {
  World world;
  stream(world, true);
  reconnect(world);
  world.emit(2, 1);
  world.complete("EndOfSequence");

  CHECK(world.end().delivered_tokens == 3);
  CHECK(world.reported<Retrying>()[0].error.code == Errc::ConnectionLost);
  CHECK(world.worker.calls("request.submit").at(1).at("emitted") == wire::Json{100, 101});
}

TEST_CASE("loss: a resumable request is resumed under its lease, not submitted again") {
  World world;
  world.request.resumable = true;
  world.worker.answers["request.resume"] = {
      wire::RequestSubmitted{.request = {"any"}, .prompt_tokens = 4}.to_json()};
  stream(world, true);
  reconnect(world);
  world.emit(2, 1);
  world.complete("EndOfSequence");

  CHECK(world.end().delivered_tokens == 3);
  REQUIRE(world.worker.calls("request.resume").size() == 1);
  CHECK(world.worker.calls("request.resume")[0].at("after_position") == 1);
  CHECK(world.worker.calls("request.submit").size() == 1);
  CHECK(world.broker.calls("lease.acquire").size() == 1);
}

TEST_CASE("loss: a resumable request is submitted again where less of its text is kept") {
  World world;
  world.request.resumable = true;
  const Errc refusal = GENERATE(Errc::UnknownRequest, Errc::BadRequest);
  world.worker.answers["request.resume"] = {fail(refusal, "not kept")};
  stream(world, true);
  reconnect(world);

  CHECK(world.worker.calls("request.resume").size() == 1);
  REQUIRE(world.worker.calls("request.submit").size() == 2);
  CHECK(world.worker.calls("request.submit")[1].at("emitted") == wire::Json{100, 101});
  CHECK(world.reported<Retrying>().size() == 1);
}

TEST_CASE("loss: a successor that refuses the token of the lost worker gets the text anew") {
  World world;
  world.request.resumable = true;
  stream(world, true);
  world.worker.answers["connection.authenticate"] = {fail(Errc::BadToken, "another key"),
                                                     wire::Json::object()};
  world.worker.drop_connections();
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  world.timers.advance(50ms);
  world.run_until([&] { return world.reported<Retrying>().size() == 2; });
  CHECK(world.reported<Retrying>()[1].error.code == Errc::LeaseFenced);
  world.timers.advance(100ms);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });

  REQUIRE(world.broker.calls("lease.acquire").size() == 2);
  CHECK(world.worker.calls("request.submit").at(1).at("emitted") == wire::Json{100, 101});
}

TEST_CASE("loss: without rebind a token that no worker accepted ends the session") {
  World world;
  world.worker.answers["connection.authenticate"] = {fail(Errc::BadToken, "forged")};
  world.start(false);
  CHECK(world.end().error->code == Errc::BadToken);
}

TEST_CASE("loss: with rebind a lease whose worker died before its first use is replaced once") {
  World world;
  world.worker.answers["connection.authenticate"] = {fail(Errc::BadToken, "another key")};
  SECTION("the successor accepts the next one") {
    world.worker.answers["connection.authenticate"].push_back(wire::Json::object());
    world.start(true);
    world.run_until([&] { return world.reported<Retrying>().size() == 1; });
    world.timers.advance(50ms);
    world.run_until([&] { return world.reported<Submitted>().size() == 1; });
    CHECK(world.broker.calls("lease.acquire").size() == 2);
  }
  SECTION("a worker of another broker refuses all") {
    world.start(true);
    world.run_until([&] { return world.reported<Retrying>().size() == 1; });
    world.timers.advance(50ms);
    CHECK(world.end().error->code == Errc::BadToken);
  }
}

TEST_CASE("loss: with rebind a worker that stays away ends with the last error") {
  World world;
  stream(world, true);
  world.worker.vanish();
  for (std::size_t retries = 1; retries <= 8; ++retries) {
    world.run_until([&] { return world.reported<Retrying>().size() == retries; });
    world.timers.advance(world.reported<Retrying>().back().delay);
  }

  const Ended ended = world.end();

  CHECK(ended.error->code == Errc::FileNotFound);
  CHECK(ended.error->detail.find("given up") != std::string::npos);
  CHECK(ended.delivered_tokens == 2);
}

TEST_CASE("loss: without a broker the stream continues until the worker ends it") {
  World world;
  stream(world, false);
  world.broker.vanish();
  world.run_until([&] { return world.reported<BrokerDisconnected>().size() == 1; });
  world.emit(2, 2);
  world.complete("EndOfSequence");

  const Ended ended = world.end();

  CHECK_FALSE(ended.error);
  CHECK(ended.delivered_tokens == 4);
  CHECK(world.reported<BrokerDisconnected>()[0].error.code == Errc::BrokerLost);
  CHECK(world.reported<BrokerDisconnected>()[0].error.scope == FailureScope::Tenant);
  CHECK(world.timers.pending() == 0);
}

TEST_CASE("loss: a returning broker grants the next lease") {
  World world;
  stream(world, true);
  world.broker.drop_connections();
  world.run_until([&] { return world.reported<BrokerDisconnected>().size() == 1; });
  world.revoke({1, 1});
  world.timers.advance(0ns);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });

  CHECK(world.reported<Rebound>().size() == 1);
}

TEST_CASE("loss: the holder identifies itself to a returning broker and renews again") {
  World world;
  stream(world, false);
  world.broker.drop_connections();
  world.run_until([&] { return world.reported<BrokerDisconnected>().size() == 1; });

  world.timers.advance(20ms);
  world.run_until([&] { return world.broker.calls("lease.renew").size() == 1; });

  REQUIRE(world.broker.calls("lease.hold").size() == 1);
  CHECK(world.broker.calls("lease.hold")[0].at("lease") == "1.1");
  CHECK(world.broker.calls("lease.hold")[0].at("token") == "v1:secret");
  CHECK(world.broker.calls("lease.acquire").size() == 1);
  world.emit(2, 1);
  world.complete("EndOfSequence");
  CHECK(world.end().delivered_tokens == 3);
  CHECK(world.timers.pending() == 0);
}

TEST_CASE("loss: the holder reconnects until the lease expires, and no longer") {
  World world;
  stream(world, false);
  world.broker.vanish();
  world.run_until([&] { return world.reported<BrokerDisconnected>().size() == 1; });
  for (int attempt = 0; attempt < 100 && world.timers.pending() > 0; ++attempt) {
    world.timers.advance(500ms);
    world.settle();
  }
  CHECK(world.timers.pending() == 0);
  CHECK(world.timers.now() >= TimePoint{5'000'000'000});
}

TEST_CASE("loss: a broker that does not know the lease is not called again") {
  World world;
  world.broker.answers["lease.hold"] = {fail(Errc::UnknownLease, "never granted")};
  stream(world, false);
  world.broker.drop_connections();
  world.run_until([&] { return world.reported<BrokerDisconnected>().size() == 1; });
  world.timers.advance(20ms);
  world.run_until([&] { return world.broker.calls("lease.hold").size() == 1; });
  world.settle();

  CHECK(world.timers.pending() == 0);
  CHECK(world.session->state() == TenantSession::State::Streaming);
}

TEST_CASE("loss: an acquisition lost with the broker is sent again with the same request id") {
  World world;
  world.start();
  world.broker.vanish();
  world.run_until([&] { return world.timers.pending() == 1; });
  FakeServer again(world.io, world.directory / "broker.sock");
  again.answers = world.broker.answers;
  again.answers["lease.acquire"].push_front(fail(Errc::NoModelLoaded, "not yet"));

  world.timers.advance(20ms);
  world.run_until([&] { return world.timers.pending() == 1; });
  world.timers.advance(40ms);
  world.run_until([&] { return world.session->state() == TenantSession::State::Streaming; });

  const auto calls = again.calls("lease.acquire");
  REQUIRE(calls.size() == 2);
  CHECK(calls.front() == calls.back());
  CHECK(again.calls("lease.hold").size() == 1);
}

TEST_CASE("loss: an acquisition fails when the broker does not return") {
  World world;
  world.start();
  world.broker.vanish();
  world.run_until([&] { return world.timers.pending() == 1; });
  for (int again = 0; again < 40 && world.reported<Ended>().empty(); ++again) {
    world.timers.advance(500ms);
  }

  CHECK(world.end().error->code == Errc::ConnectionLost);
}

TEST_CASE("loss: a message about another request is an error") {
  World world;
  stream(world, false);
  world.worker.notify("token.emitted",
                      wire::TokenEmitted{.request = {"req-2"}, .position = 2}.to_json());

  CHECK(world.end().error->code == Errc::MalformedMessage);
}

TEST_CASE("loss: a malformed message is an error") {
  World world;
  stream(world, false);
  world.worker.notify("token.emitted", {{"request", 5}});

  CHECK(world.end().error->code == Errc::MalformedMessage);
}
