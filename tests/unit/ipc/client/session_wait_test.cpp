// A session whose text has lost its lease: how long it waits for another, and when it is whole.
#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

TEST_CASE("rebind: it waits for memory as long as the broker says when to ask again") {
  World world;
  world.stream(true);
  world.emit(0, 5);
  world.revoke({1, 1});
  auto& grants = world.broker.answers["lease.acquire"];
  const Error full{.code = Errc::PoolExhausted, .detail = "0 free", .retry_after_ms = 100};
  for (int i = 0; i < 30; ++i) grants.push_front(std::unexpected(full));
  for (std::size_t refused = 1; refused <= 30; ++refused) {
    world.timers.advance(100ms);
    world.run_until([&] { return world.reported<Retrying>().size() == refused; });
  }
  world.timers.advance(100ms);
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
  world.emit(5, 1);
  CHECK(world.completes());
  CHECK(world.session->tokens().size() == 6);
  const auto calls = world.broker.calls("lease.acquire");
  REQUIRE(calls.size() == 32);
  for (std::size_t i = 1; i < calls.size(); ++i) CHECK(calls[i].at("replaces") == "1.1");
}

TEST_CASE("rebind: a default token limit is the one that the worker lowered it to") {
  World world;
  world.request.may_shorten = true;
  world.worker.answers["request.submit"] = {
      wire::RequestSubmitted{.request = {"any"}, .prompt_tokens = 4, .max_emitted_tokens = 5}
          .to_json()};
  world.stream(true);
  world.emit(0, 5);
  world.revoke({1, 1});
  CHECK_FALSE(world.end().error);  // every token had arrived
  CHECK(world.reported<Ended>().front().reason == "MaxTokensReached");
}
