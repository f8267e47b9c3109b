// A session whose request asks for the log probabilities of its prompt.
#include <catch2/catch.hpp>

#include "ipc/client/session.hpp"
#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;

namespace {

/// The worker's prompts have four tokens.
struct ScoringWorld : World {
  ScoringWorld() {
    request.prompt_logprobs = 1;
    request.max_emitted_tokens = 0;
  }
  void send(std::uint32_t position, std::uint32_t count) {
    wire::PromptLogprobs logprobs{.request = {"req-1"}, .position = position, .tokens = {}};
    for (std::uint32_t i = position; i < position + count; ++i)
      logprobs.tokens.push_back({.token = token_at(i), .logprob = -1.0f, .top_logprobs = {}});
    worker.notify("prompt.logprobs", logprobs.to_json());
  }
  std::size_t arrived() const {
    std::size_t count = 0;
    for (const auto& each : reported<PromptLogprobsArrived>()) count += each.logprobs.tokens.size();
    return count;
  }
};

}  // namespace

TEST_CASE("session logprobs: a rebind continues after the positions that arrived") {
  ScoringWorld world;
  world.stream(true);
  world.send(0, 3);
  world.run_until([&] { return world.arrived() == 3; });
  world.revoke({1, 1});
  world.timers.advance(Duration::zero());
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
  const auto again = world.worker.calls("request.submit").at(1);
  CHECK(again.at("prompt_logprobs") == 1);
  CHECK(again.at("received_prompt_positions") == 3);
  CHECK_FALSE(world.worker.calls("request.submit").at(0).contains("received_prompt_positions"));
  world.send(3, 1);
  world.complete("MaxTokensReached");
  CHECK_FALSE(world.end().error);
  CHECK(world.arrived() == 4);
}

TEST_CASE("session logprobs: a request without tokens is whole once its prompt has arrived") {
  ScoringWorld world;
  world.stream(true);
  world.send(0, 4);
  world.run_until([&] { return world.arrived() == 4; });
  world.complete_revoked({1, 1});
  CHECK(world.end().reason == "MaxTokensReached");
  CHECK(world.worker.calls("request.submit").size() == 1);
}

TEST_CASE("session logprobs: a repeated, a skipped and a missing position are errors") {
  ScoringWorld world;
  world.stream();
  world.send(0, 2);
  SECTION("repeated") {
    world.send(1, 1);
  }
  SECTION("skipped") {
    world.send(3, 1);
  }
  SECTION("missing at the end") {
    world.complete("MaxTokensReached");
  }
  const Ended ended = world.end();
  REQUIRE(ended.error);
  CHECK(ended.error->code == Errc::MalformedMessage);
}
