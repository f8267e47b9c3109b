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
