// What the choices of an answer do, as their sessions report it.
#include "worker/http/choice_progress.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::http;

TEST_CASE("choice progress: the log probabilities of all prompts of an answer have one limit") {
  constexpr std::size_t kMost = wire::RequestSubmit::kMaxPromptLogprobs;
  ChoiceProgress progress(2, 1);
  client::PromptLogprobsArrived half;
  half.logprobs.tokens.resize(kMost / 4, wire::PromptToken{.top_logprobs = {{}}});
  CHECK_FALSE(progress.note({0, half}));
  CHECK_FALSE(progress.note({1, half}));
  half.logprobs.tokens.resize(1);
  const auto refused = progress.note({1, half});
  REQUIRE(refused);
  CHECK(refused->code == Errc::BadRequest);
  CHECK(refused->detail.contains("131072"));
}

TEST_CASE("choice progress: tokens of another host count, but a full queue still is the answer") {
  const client::Retrying full{.error = {Errc::QueueFull, "256 requests wait"}};
  ChoiceProgress moved(1, 1);
  moved.note_token(0);
  CHECK(moved.usage().completion_tokens == 1);
  CHECK(moved.running(std::vector<RequestId>{{"r"}}).front().emitted_tokens == 1);
  CHECK(moved.note({0, full}) == full.error);

  ChoiceProgress begun(1, 1);
  CHECK_FALSE(begun.note({0, client::TokenArrived{}}));
  CHECK_FALSE(begun.note({0, full}));
}
