// A session whose text continues elsewhere: on a worker of another arithmetic, or without a
// published text.
#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

/// The broker grants lease 1.1 on a worker that computes in f32, and later ones in int8.
void grant_other_arithmetic(World& world) {
  auto& grants = world.broker.answers["lease.acquire"];
  for (std::size_t i = 0; i < grants.size(); ++i)
    (*grants[i])["arithmetic"] = i == 0 ? "f32" : "int8";
}

/// Streams `count` tokens under the first lease, then ends the stream.
void stream_and_revoke(World& world, int count) {
  world.stream(true);
  world.emit(0, count);
  world.revoke({1, 1});
  world.timers.advance(0ns);
}

void run_until_submitted_again(World& world) {
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
}

}  // namespace

TEST_CASE("rebind: a text does not continue on a worker of another arithmetic") {
  World world;
  grant_other_arithmetic(world);
  stream_and_revoke(world, 5);

  const Ended ended = world.end();

  CHECK(ended.error->code == Errc::UnknownWorker);
  CHECK(ended.error->detail.contains("5 tokens were computed in f32"));
  CHECK(ended.error->detail.contains("--any-arithmetic"));
  CHECK(world.worker.calls("request.submit").size() == 1);
  CHECK(world.broker.calls("lease.release").back().at("lease") == "1.2");
}

TEST_CASE("rebind: with any_arithmetic a text continues on any worker, and the event says so") {
  World world;
  world.any_arithmetic = true;
  grant_other_arithmetic(world);
  stream_and_revoke(world, 5);
  run_until_submitted_again(world);

  REQUIRE(world.reported<Rebound>().size() == 1);
  CHECK(world.reported<Rebound>()[0].other_arithmetic == "int8");
}

TEST_CASE("rebind: before its first token a text may begin anew in another arithmetic") {
  World world;
  grant_other_arithmetic(world);
  stream_and_revoke(world, 0);
  run_until_submitted_again(world);

  CHECK(world.reported<Rebound>()[0].other_arithmetic.empty());
}

TEST_CASE("rebind: the end of another lease that a text reads is reported when it continues") {
  const std::string scope = GENERATE("shared", "adapter");
  World world;
  world.stream(true);
  world.emit(0, 5);
  world.worker.notify("request.completed", wire::RequestCompleted{.request = {"req-1"},
                                                                  .reason = "Revoked",
                                                                  .emitted_tokens = 5,
                                                                  .lease = LeaseId{7, 3},
                                                                  .scope = scope,
                                                                  .revoke_reason = "operator"}
                                               .to_json());
  world.run_until([&] { return world.reported<Interrupted>().size() == 1; });
  world.timers.advance(0ns);
  run_until_submitted_again(world);

  REQUIRE(world.reported<Rebound>().size() == 1);
  CHECK(world.reported<Rebound>()[0].old_lease == LeaseId{7, 3});
  CHECK(world.reported<Rebound>()[0].new_lease == LeaseId{1, 1});
  CHECK(world.broker.calls("lease.acquire").size() == 1);
}

TEST_CASE("rebind: a text names the adapter version of its tokens, and without tokens none") {
  const int tokens = GENERATE(0, 5);
  const std::string digest(64, 'a');
  World world;
  world.request.adapter = "support";
  world.worker.answers["request.submit"] = {
      wire::RequestSubmitted{.request = {"any"}, .prompt_tokens = 4, .adapter_digest = digest}
          .to_json()};
  stream_and_revoke(world, tokens);
  run_until_submitted_again(world);

  const auto submissions = world.worker.calls("request.submit");
  REQUIRE(submissions.size() == 2);
  CHECK_FALSE(submissions[0].contains("adapter_digest"));
  CHECK(submissions[1].value("adapter_digest", "") == (tokens == 0 ? "" : digest));
}
