// A session that continues after its lease is revoked: no token is lost or repeated.
#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

/// Streams `count` tokens under the first lease, then revokes it.
void stream_then_revoke(World& world, int count) {
  world.stream(true);
  world.emit(0, count);
  world.revoke({1, 1});
}

/// Runs due timers, then the loop until the worker has accepted `submissions` requests.
void run_until_submitted(World& world, std::size_t submissions) {
  world.timers.advance(0ns);
  world.run_until([&] { return world.reported<Submitted>().size() == submissions; });
}

}  // namespace

TEST_CASE("rebind: the stream continues after the last token with the same request id") {
  World world;
  stream_then_revoke(world, 5);
  run_until_submitted(world, 2);
  world.emit(5, 3);
  world.complete("EndOfSequence");

  const Ended ended = world.end();

  CHECK_FALSE(ended.error);
  std::vector<std::int32_t> expected;
  for (std::uint32_t i = 0; i < 8; ++i) expected.push_back(token_at(i));
  CHECK(world.session->tokens() == expected);
  const auto again = world.worker.calls("request.submit").at(1);
  CHECK(again.at("request_id") == "req-1");
  CHECK(again.at("prompt") == "Once");
  CHECK(again.at("emitted") == wire::Json{100, 101, 102, 103, 104});
  CHECK(again.at("rebound_from") == "1.1");
}

TEST_CASE("rebind: a chat is submitted again unchanged, with the time of the first submission") {
  World world;
  world.request.prompt.reset();
  world.request.messages.emplace().push_back({"user", "Hi"});
  world.request.asked_at_unix_s = 86'399;
  stream_then_revoke(world, 5);
  run_until_submitted(world, 2);
  const auto again = world.worker.calls("request.submit").at(1);
  CHECK(again.at("messages") == wire::Json::parse(R"([{"role":"user","content":"Hi"}])"));
  CHECK(again.at("asked_at_unix_s") == 86'399);
  CHECK_FALSE(again.contains("prompt"));
}

TEST_CASE("rebind: the schema stays lenient, and what is not checked is reported once") {
  World world;
  world.request.sampling.response_format = {"json_schema", R"({"not":{}})", false};
  world.worker.answers["request.submit"] = {wire::RequestSubmitted{
      .request = {"any"}, .prompt_tokens = 4, .unchecked = {"#: 'not'"}, .unchecked_omitted = 1}
                                                .to_json()};
  stream_then_revoke(world, 5);
  run_until_submitted(world, 2);
  for (const auto& call : world.worker.calls("request.submit"))
    CHECK(call.at("sampling").at("response_format").at("json_schema").at("strict") == false);
  const auto submitted = world.reported<Submitted>();
  CHECK(submitted[0].unchecked == std::vector<std::string>{"#: 'not'"});
  CHECK(submitted[0].unchecked_omitted == 1);
  CHECK(submitted[1].unchecked.empty());
  CHECK(submitted[1].unchecked_omitted == 0);
}

TEST_CASE("rebind: the new lease names the old one, which is released") {
  World world;
  stream_then_revoke(world, 1);
  run_until_submitted(world, 2);

  CHECK(world.broker.calls("lease.acquire").at(1).at("replaces") == "1.1");
  CHECK(world.broker.calls("lease.acquire")[0].at("request_id") !=
        world.broker.calls("lease.acquire")[1].at("request_id"));
  world.run_until([&] { return world.broker.calls("lease.release").size() == 1; });
  CHECK(world.broker.calls("lease.release")[0].at("lease") == "1.1");
  REQUIRE(world.reported<Rebound>().size() == 1);
  CHECK(world.reported<Rebound>()[0].old_lease == LeaseId{1, 1});
  CHECK(world.reported<Rebound>()[0].new_lease == LeaseId{1, 2});
  CHECK(world.reported<Retrying>().empty());  // Interrupted already reported it
}

TEST_CASE("rebind: only the new lease is renewed") {
  World world;
  stream_then_revoke(world, 1);
  run_until_submitted(world, 2);

  world.timers.advance(1000ms);
  world.run_until([&] { return world.broker.calls("lease.renew").size() == 1; });

  CHECK(world.broker.calls("lease.renew")[0].at("lease") == "1.2");
}

TEST_CASE("rebind: a fenced lease is replaced like a revoked one") {
  World world;
  world.worker.answers["request.submit"].push_front(fail(Errc::LeaseFenced, "lease 1.1 is fenced"));
  world.start(true);
  world.run_until([&] { return !world.reported<Retrying>().empty(); });
  run_until_submitted(world, 1);

  CHECK(world.worker.calls("request.submit").at(1).count("rebound_from") == 0);
  CHECK(world.broker.calls("lease.acquire").size() == 2);
  REQUIRE(world.reported<Retrying>().size() == 1);
  CHECK(world.reported<Retrying>()[0].error.code == Errc::LeaseFenced);
}

TEST_CASE(
    "rebind: a lease revoked while the request waits is reported and replaced without delay") {
  World world;
  world.start(true);
  run_until_submitted(world, 1);
  world.complete("LeaseRevoked");
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  run_until_submitted(world, 2);

  CHECK(world.reported<Interrupted>().empty());
  CHECK(world.reported<Retrying>()[0].error.code == Errc::LeaseRevoked);
  CHECK(world.reported<Retrying>()[0].delay == 0ns);
  CHECK(world.broker.calls("lease.acquire").size() == 2);
}

TEST_CASE("rebind: the stream continues after a second revocation") {
  World world;
  stream_then_revoke(world, 2);
  run_until_submitted(world, 2);
  world.emit(2, 2);
  world.revoke({1, 2});
  world.timers.advance(100ms);
  run_until_submitted(world, 3);
  world.emit(4, 1);
  world.complete("EndOfSequence");

  CHECK(world.end().delivered_tokens == 5);
  CHECK(world.worker.calls("request.submit").at(2).at("rebound_from") == "1.2");
}

TEST_CASE("rebind: a lease that is revoked after each token is replaced with growing delays") {
  World world;
  world.stream(true);
  for (std::uint32_t i = 0; i < 10; ++i) {
    world.emit(i, 1);
    world.revoke({1, i + 1});
    if (i > 0) world.timers.advance(world.reported<Retrying>().back().delay);
    run_until_submitted(world, i + 2);
  }
  world.emit(10, 1);
  world.complete("EndOfSequence");

  CHECK(world.end().delivered_tokens == 11);
  std::vector<std::int64_t> delays_ms;  // the first replacement has none
  for (const Retrying& retrying : world.reported<Retrying>())
    delays_ms.push_back(retrying.delay / 1ms);
  CHECK(delays_ms == std::vector<std::int64_t>{100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000});
}

TEST_CASE("rebind: after enough tokens a revoked lease is replaced without delay again") {
  World world;
  stream_then_revoke(world, 1);
  run_until_submitted(world, 2);
  world.emit(1, 16);
  world.revoke({1, 2});
  run_until_submitted(world, 3);
}

TEST_CASE("rebind: a session over its limit waits as the broker says") {
  World world;
  auto& grants = world.broker.answers["lease.acquire"];
  const Error limited{.code = Errc::RebindRateLimited, .detail = "", .retry_after_ms = 9'000};
  grants.insert(std::next(grants.begin()), std::unexpected(limited));
  stream_then_revoke(world, 2);
  world.timers.advance(0ns);
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  CHECK(world.reported<Retrying>()[0].delay == 9s);
  world.timers.advance(8999ms);
  world.settle();
  CHECK(world.broker.calls("lease.acquire").size() == 2);
  world.timers.advance(1ms);
  run_until_submitted(world, 2);
}

TEST_CASE("rebind: a full pool is retried with growing delays, then an error") {
  World world;
  world.broker.answers["lease.acquire"].resize(1);
  world.broker.answers["lease.acquire"].push_back(fail(Errc::PoolExhausted, "0 of 8 free"));
  stream_then_revoke(world, 2);

  world.timers.advance(0ns);
  std::vector<std::int64_t> delays_ms;
  for (std::size_t retries = 1; retries <= 7; ++retries) {
    world.run_until([&] { return world.reported<Retrying>().size() == retries; });
    delays_ms.push_back(world.reported<Retrying>().back().delay / 1ms);
    world.timers.advance(world.reported<Retrying>().back().delay);
  }
  const Ended ended = world.end();

  CHECK(delays_ms == std::vector<std::int64_t>{100, 200, 400, 800, 1600, 2000, 2000});
  CHECK(ended.error->code == Errc::PoolExhausted);
  CHECK(ended.error->detail.find("given up after 9 attempts") != std::string::npos);
  CHECK(ended.delivered_tokens == 2);
}

TEST_CASE("rebind: a full quota is retried under the same lease") {
  World world;
  world.worker.answers["request.submit"].push_front(fail(Errc::QuotaConcurrent, "1 of 1 running"));
  world.start(true);
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  world.timers.advance(50ms);
  world.run_until([&] { return world.session->state() == TenantSession::State::Streaming; });

  CHECK(world.broker.calls("lease.acquire").size() == 1);
  CHECK(world.worker.calls("request.submit").size() == 2);
}

TEST_CASE(
    "rebind: a rebind refused while the engine recovers is submitted again, once per refusal") {
  World world;
  stream_then_revoke(world, 5);
  world.worker.answers["request.submit"].push_front(fail(Errc::EngineLeaseFenced, "restoring"));
  world.timers.advance(0ns);
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  const Retrying waiting = world.reported<Retrying>()[0];
  CHECK(waiting.error.code == Errc::EngineLeaseFenced);
  CHECK(waiting.error.scope == FailureScope::Engine);
  world.settle();
  CHECK(world.worker.calls("request.submit").size() == 2);
  world.timers.advance(waiting.delay);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
  world.emit(5, 3);
  CHECK(world.completes());
  CHECK(world.session->tokens().size() == 8);
  CHECK(world.broker.calls("lease.acquire").size() == 2);
  CHECK(world.worker.calls("request.submit").size() == 3);
  CHECK(world.worker.calls("request.submit")[2].at("rebound_from") == "1.1");
}

TEST_CASE("rebind: weights that take long to restore cost no lease and no position") {
  World world;
  world.stream(true);
  world.emit(0, 4);
  world.worker.notify(
      "request.completed",
      wire::RequestCompleted{
          .request = {"req-1"}, .reason = "WeightsLoading", .emitted_tokens = 4, .scope = "engine"}
          .to_json());
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  world.timers.advance(world.reported<Retrying>()[0].delay);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
  world.emit(4, 2);
  CHECK(world.completes());
  CHECK(world.session->tokens().size() == 6);
  CHECK(world.reported<Rebound>().empty());
  CHECK(world.broker.calls("lease.acquire").size() == 1);
  CHECK_FALSE(world.worker.calls("request.submit").at(1).contains("rebound_from"));
}

TEST_CASE(
    "rebind: a refusal after waiting that names the lease does not mean that it was revoked") {
  World world;
  stream_then_revoke(world, 3);
  run_until_submitted(world, 2);
  world.worker.notify("request.completed", wire::RequestCompleted{.request = {"req-1"},
                                                                  .reason = "Draining",
                                                                  .emitted_tokens = 3,
                                                                  .lease = LeaseId{1, 2},
                                                                  .scope = "tenant"}
                                               .to_json());
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
  CHECK(world.reported<Retrying>()[0].error.code == Errc::Draining);
  CHECK(world.reported<Interrupted>().size() == 1);
}

namespace {

/// The worker refuses the request for now, so the session holds a lease that no request uses.
void hold_idle_lease(World& world, bool rebind) {
  const Errc refused = rebind ? Errc::QuotaConcurrent : Errc::BrokerLost;
  world.worker.answers["request.submit"].push_front(fail(refused, "not now"));
  world.start(rebind);
  world.run_until([&] { return world.reported<Retrying>().size() == 1; });
}

wire::Json notice_of(LeaseId lease) {
  return wire::LeaseRevoked{.lease = lease, .reason = RevokeReason::Operator}.to_json();
}

}  // namespace

TEST_CASE("rebind: the revocation of an idle lease is reported at once, and the lease replaced") {
  World world;
  hold_idle_lease(world, true);
  world.broker.notify("lease.revoked", notice_of({1, 1}));
  world.run_until([&] { return world.reported<Retrying>().size() == 2; });

  CHECK(world.reported<Retrying>()[1].error ==
        Error{Errc::LeaseRevoked,
              "lease 1.1 (tenant scope) was revoked (operator) while no request ran under it"});
  world.timers.advance(world.reported<Retrying>()[1].delay);
  run_until_submitted(world, 1);
  CHECK(world.broker.calls("lease.acquire").size() == 2);
  CHECK(world.reported<Submitted>()[0].lease == LeaseId{1, 2});
}

TEST_CASE("rebind: without --rebind the revocation of an idle lease ends the session") {
  World world;
  hold_idle_lease(world, false);
  world.broker.notify("lease.revoked", notice_of({1, 1}));

  CHECK(world.end().error->code == Errc::LeaseRevoked);
}

TEST_CASE("rebind: while a request runs, its worker reports the end of the lease") {
  World world;
  world.stream(true);
  world.emit(0, 1);
  world.broker.notify("lease.revoked", notice_of({1, 1}));
  world.settle();
  world.emit(1, 1);
  world.settle();
  CHECK(world.reported<Retrying>().empty());
  CHECK(world.session->tokens().size() == 2);
  world.revoke({1, 1});
  run_until_submitted(world, 2);
}

TEST_CASE("rebind: a notice about an earlier lease, or one that does not fit, is ignored") {
  World world;
  hold_idle_lease(world, true);
  world.broker.notify("lease.revoked", notice_of({1, 7}));
  world.broker.notify("lease.revoked", {{"lease", 5}});
  world.broker.notify("lease.shrunk", notice_of({1, 1}));
  world.settle();
  CHECK(world.reported<Retrying>().size() == 1);
  world.timers.advance(50ms);
  run_until_submitted(world, 1);
  CHECK(world.broker.calls("lease.acquire").size() == 1);
}

TEST_CASE("rebind: a revocation after the last token completes the request") {
  World world;
  world.stream(true);
  world.emit(0, 100);
  world.complete_revoked({1, 1});

  const Ended ended = world.end();

  CHECK_FALSE(ended.error);
  CHECK(ended.reason == "MaxTokensReached");
  CHECK(world.broker.calls("lease.acquire").size() == 1);
}

TEST_CASE("rebind: cancelling between two leases ends the session") {
  World world;
  stream_then_revoke(world, 2);
  world.session->cancel();

  CHECK(world.end().reason == "Cancelled");
  CHECK(world.broker.calls("lease.acquire").size() == 1);
}

TEST_CASE("rebind: a broker that does not know the old lease grants one that replaces none") {
  World world;
  auto& grants = world.broker.answers["lease.acquire"];
  grants.insert(std::next(grants.begin()), fail(Errc::UnknownLease, "lease 1.1 was never granted"));
  stream_then_revoke(world, 2);
  run_until_submitted(world, 2);
  world.emit(2, 3);
  CHECK(world.completes());
  CHECK(world.session->tokens().size() == 5);
  const auto asked = world.broker.calls("lease.acquire");
  REQUIRE(asked.size() == 3);
  CHECK(asked[1].at("replaces") == "1.1");
  CHECK_FALSE(asked[2].contains("replaces"));
  CHECK(asked[1].at("request_id") != asked[2].at("request_id"));
}
