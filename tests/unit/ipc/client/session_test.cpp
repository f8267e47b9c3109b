// A session from start to end: tokens, renewals, refusals, cancelling.
#include "ipc/client/session.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

TEST_CASE("tenant session: acquires, streams every token, releases the lease") {
  World world;
  world.stream();
  world.emit(0, 3);
  world.complete("EndOfSequence");

  const Ended ended = world.end();

  CHECK_FALSE(ended.error);
  CHECK(ended.reason == "EndOfSequence");
  CHECK(ended.delivered_tokens == 3);
  CHECK(world.session->tokens() == std::vector<std::int32_t>{100, 101, 102});
  CHECK(world.session->state() == TenantSession::State::Done);
  REQUIRE(world.broker.calls("lease.release").size() == 1);
  CHECK(world.broker.calls("lease.release")[0].at("lease") == "1.1");
}

TEST_CASE("tenant session: the worker gets the lease token and the prompt") {
  World world;
  world.stream();

  const auto generate = world.worker.calls("request.submit").at(0);

  CHECK(generate.at("token") == "v1:secret");
  CHECK(generate.at("prompt") == "Once");
  CHECK(generate.at("request_id") == "req-1");
}

TEST_CASE("tenant session: the lease is renewed after each third of its TTL") {
  World world;
  world.stream();

  world.timers.advance(999ms);
  world.settle();
  CHECK(world.broker.calls("lease.renew").empty());
  for (std::size_t renewals = 1; renewals <= 3; ++renewals) {
    world.timers.advance(renewals == 1 ? 1ms : 1000ms);
    world.run_until([&] { return world.broker.calls("lease.renew").size() == renewals; });
  }

  CHECK(world.broker.calls("lease.renew")[0].at("lease") == "1.1");
  CHECK(world.broker.calls("lease.renew")[0].at("request_id") !=
        world.broker.calls("lease.renew")[1].at("request_id"));
}

TEST_CASE("tenant session: a renewal with a final refusal is not repeated") {
  World world;
  world.broker.answers["lease.renew"] = {fail(Errc::LeaseRevoked, "lease 1.1 is over")};
  world.stream();
  world.timers.advance(1000ms);
  world.run_until([&] { return world.timers.pending() == 0; });

  world.complete_revoked({1, 1});

  CHECK(world.end().error->code == Errc::LeaseRevoked);
  CHECK(world.broker.calls("lease.renew").size() == 1);
}

TEST_CASE("tenant session: a refusal by the broker ends the session with the broker's code") {
  const auto code = GENERATE(Errc::UnknownTenant, Errc::PermissionDenied, Errc::QuotaConcurrent,
                             Errc::QuotaBlocks, Errc::PoolExhausted, Errc::UnknownWorker,
                             Errc::NoModelLoaded, Errc::RequestIdConflict);
  World world;
  world.broker.answers["lease.acquire"] = {fail(code, "because 7 > 5")};
  world.start();

  const Ended ended = world.end();

  CHECK(ended.error == Error{code, "because 7 > 5"});
  CHECK(world.broker.calls("lease.acquire").size() == 1);
}

TEST_CASE("tenant session: a refusal by the worker ends the session with the worker's error") {
  World world;
  world.worker.answers["request.submit"] = {fail(Errc::BadRequest, "prompt: must not be empty")};
  world.start();

  CHECK(world.end().error == Error{Errc::BadRequest, "prompt: must not be empty"});
  CHECK(world.broker.calls("lease.release").size() == 1);
}

TEST_CASE("tenant session: a missing broker is an error at once, even with rebind") {
  World world;
  world.broker.vanish();
  world.start(true);

  CHECK(world.end().error->code == Errc::FileNotFound);
}

TEST_CASE("tenant session: a revocation error names lease, scope, reason and tokens") {
  World world;
  world.stream();
  world.emit(0, 5);
  world.complete_revoked({1, 1});

  const Ended ended = world.end();

  REQUIRE(ended.error);
  CHECK(ended.error->code == Errc::LeaseRevoked);
  for (const char* word : {"1.1", "tenant scope", "operator", "5 tokens"}) {
    CHECK(ended.error->detail.find(word) != std::string::npos);
  }
  CHECK(ended.delivered_tokens == 5);
  CHECK(world.reported<TokenArrived>().size() == 5);
}

TEST_CASE("tenant session: a repeated position is an error") {
  World world;
  world.stream();
  world.emit(0, 2);
  world.emit(1, 1);

  const Ended ended = world.end();

  CHECK(ended.error->code == Errc::MalformedMessage);
  CHECK(ended.error->detail.find("position 1 twice") != std::string::npos);
  CHECK(ended.delivered_tokens == 2);
}

TEST_CASE("tenant session: a gap in the positions is an error") {
  World world;
  world.stream();
  world.emit(0, 1);
  world.emit(2, 1);

  CHECK(world.end().error->detail.find("position 2 too early, expected 1") != std::string::npos);
}

TEST_CASE("tenant session: a lost last token is an error at the end") {
  World world;
  world.stream();
  world.emit(0, 2);
  world.sent = 3;
  world.complete("MaxTokensReached");

  CHECK(world.end().error->detail == "the worker counted 3 tokens, but 2 arrived");
}

TEST_CASE("tenant session: JSON that the token limit cuts off has a note, other text has none") {
  const std::string type = GENERATE("json_object", "json_schema", "text");
  World world;
  world.request.sampling.response_format.type = type;
  if (type == "json_schema") world.request.sampling.response_format.schema = "{}";
  world.stream();
  world.emit(0, 2);
  world.complete("MaxTokensReached");

  const Ended ended = world.end();

  CHECK_FALSE(ended.error);
  CHECK(ended.note == (type == "text" ? ""
                                      : "the answer is cut off after 2 tokens, so it is not valid "
                                        "JSON; raise --max-tokens"));
}

TEST_CASE("tenant session: cancelling ends the request at the worker, then releases the lease") {
  World world;
  world.stream();
  world.deliver(2);
  world.session->cancel();
  world.run_until([&] { return world.worker.calls("request.cancel").size() == 1; });
  world.complete("Cancelled");

  const Ended ended = world.end();

  CHECK_FALSE(ended.error);
  CHECK(ended.reason == "Cancelled");
  CHECK(world.worker.calls("request.cancel")[0].at("request_id") == "req-1");
  CHECK(world.broker.calls("lease.release").size() == 1);
}

TEST_CASE("tenant session: the wait for a cancelled request is bounded") {
  World world;
  world.stream();
  world.session->cancel();
  world.run_until([&] { return world.worker.calls("request.cancel").size() == 1; });

  world.timers.advance(2s);

  CHECK(world.end().reason == "Cancelled");
}

TEST_CASE("tenant session: cancelling before the grant does not call a worker") {
  World world;
  world.start();
  world.session->cancel();

  CHECK(world.end().reason == "Cancelled");
  CHECK(world.worker.calls("request.submit").empty());
}

TEST_CASE("rebind: the cached tokens are those of the first submission that reports them") {
  // No number: the submission was never admitted.
  const auto first = GENERATE(std::optional<std::uint32_t>(16), std::optional<std::uint32_t>());
  World world;
  world.stream(true);
  world.worker.notify_submitter("request.completed",
                                wire::RequestCompleted{.request = {"req-1"},
                                                       .reason = "Revoked",
                                                       .lease = LeaseId{1, 1},
                                                       .scope = "tenant",
                                                       .revoke_reason = "operator",
                                                       .cached_tokens = first}
                                    .to_json());
  world.run_until([&] { return !world.reported<Interrupted>().empty(); });
  world.timers.advance(0ns);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
  world.worker.notify_submitter(
      "request.completed",
      wire::RequestCompleted{
          .request = {"req-1"}, .reason = "EndOfSequence", .scope = "tenant", .cached_tokens = 48}
          .to_json());
  CHECK(world.end().cached_tokens == first.value_or(48));
}

TEST_CASE("session: a request for no token is not done because its lease was revoked") {
  World world;
  world.request.max_emitted_tokens = 0;
  world.stream(true);
  world.revoke({1, 1});
  world.timers.advance(0ns);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
  world.complete("MaxTokensReached");
  CHECK_FALSE(world.end().error);

  World without_rebind;
  without_rebind.request.max_emitted_tokens = 0;
  without_rebind.stream();
  without_rebind.complete_revoked({1, 1});
  const Ended ended = without_rebind.end();
  REQUIRE(ended.error);
  CHECK(ended.error->code == Errc::LeaseRevoked);
}
