// Log probabilities of prompts, with a real engine.
#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTop = 5;

/// A text of about 60 tokens and its scores. `score` runs it in a new engine.
struct Scored {
  explicit Scored(RigOptions options = {}) : rig(std::move(options)), lease(rig.grant("t")) {
    text = rig.encode(
        "Once upon a time, there was a little girl named Lily. She loved to play "
        "outside in the park. One day, she saw a big red ball and a small dog.");
    REQUIRE(text.size() > 40);
  }
  PromptRequest scoring(const std::string& id, std::uint32_t tokens = 0) const {
    PromptRequest request = rig.request("t", lease, id, text, tokens);
    request.prompt_logprobs = kTop;
    return request;
  }
  const std::vector<PromptToken>& score(const std::string& id = "score") {
    REQUIRE(rig.submit(scoring(id)));
    rig.run();
    CHECK(rig.completion(id).reason == CompletionReason::MaxTokensReached);
    CHECK(rig.outcome(id).tokens.empty());
    REQUIRE(rig.outcome(id).prompt.size() == text.size());
    return rig.outcome(id).prompt;
  }

  EngineRig rig;
  LeaseId lease;
  std::vector<TokenId> text;
};

const std::vector<PromptToken>& expected() {
  static const std::vector<PromptToken> kScores = Scored().score();
  return kScores;
}

}  // namespace

TEST_CASE("prompt logprobs: a prompt token has the bits that it had when it was drawn") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  const std::vector<TokenId> prompt = rig.encode("Once upon a time");
  PromptRequest drawn = rig.request("t", lease, "drawn", prompt, 40);
  drawn.sampling.top_logprobs = kTop;
  REQUIRE(rig.submit(drawn));
  rig.run();
  const RequestOutcome& text = rig.outcome("drawn");
  std::vector<TokenId> whole = prompt;
  whole.insert(whole.end(), text.tokens.begin(), text.tokens.end());
  PromptRequest scoring = rig.request("t", lease, "scored", whole, 0);
  scoring.prompt_logprobs = kTop;
  REQUIRE(rig.submit(scoring));
  rig.run();
  const std::vector<PromptToken>& scored = rig.outcome("scored").prompt;
  REQUIRE(scored.size() == whole.size());
  CHECK_FALSE(scored[0].logprobs);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(scored[i].token == whole[i]);
  for (std::size_t i = 0; i < text.tokens.size(); ++i)
    CHECK(scored[prompt.size() + i].logprobs == text.logprobs[i]);
  CHECK(rig.completion("scored").cached_tokens == 0);
}

TEST_CASE("prompt logprobs: are the same bits in any chunks and in any batch") {
  const auto [budget, sequences] =
      GENERATE(std::pair(256u, 64u), std::pair(256u, 8u), std::pair(7u, 3u), std::pair(16u, 1u));
  RigOptions options;
  options.limits.token_budget = budget;
  options.limits.max_batch_size = sequences;
  Scored scored(options);
  for (std::uint32_t i = 1; i < sequences && i < 4; ++i) {
    const std::string id = "other-" + std::to_string(i);
    REQUIRE(scored.rig.submit(
        scored.rig.request("t", scored.lease, id, scored.rig.encode("The dog " + id), 30)));
  }
  CHECK(scored.score() == expected());
}

TEST_CASE("prompt logprobs: cached rows are computed again, and the scored prompt is cached") {
  Scored scored;
  REQUIRE(scored.rig.submit(scored.rig.request("t", scored.lease, "before", scored.text, 3)));
  scored.rig.run();
  CHECK(scored.score() == expected());
  CHECK(scored.rig.completion("score").cached_tokens == 0);
  REQUIRE(scored.rig.submit(scored.rig.request("t", scored.lease, "after", scored.text, 3)));
  scored.rig.run();
  CHECK(scored.rig.completion("after").cached_tokens > 0);
  CHECK(scored.rig.outcome("after").tokens == scored.rig.outcome("before").tokens);
}

TEST_CASE("prompt logprobs: precede the text, which is the one without them") {
  Scored scored;
  REQUIRE(scored.rig.submit(scored.scoring("both", 8)));
  REQUIRE(scored.rig.submit(scored.rig.request("t", scored.lease, "plain", scored.text, 8)));
  while (scored.rig.outcome("both").tokens.empty()) {
    REQUIRE(scored.rig.step());
    if (!scored.rig.outcome("both").tokens.empty())
      CHECK(scored.rig.outcome("both").prompt.size() == scored.text.size());
  }
  scored.rig.run();
  CHECK(scored.rig.outcome("both").prompt == expected());
  CHECK(scored.rig.outcome("both").tokens == scored.rig.outcome("plain").tokens);
}

TEST_CASE("prompt logprobs: a rebind continues after the positions that arrived") {
  RigOptions options;
  options.limits.token_budget = 20;
  Scored scored(options);
  REQUIRE(scored.rig.submit(scored.scoring("score")));
  REQUIRE(scored.rig.step());
  REQUIRE(scored.rig.step());
  const std::size_t arrived = scored.rig.outcome("score").prompt.size();
  REQUIRE(arrived > 20);
  REQUIRE(arrived < scored.text.size());
  const LeaseId old = std::exchange(scored.lease, scored.rig.grant("t"));
  scored.rig.revoke(old);
  REQUIRE(scored.rig.step());
  CHECK(scored.rig.outcome("score").prompt.size() == arrived);
  PromptRequest again = scored.scoring("score");
  again.rebound_from = old;
  again.reported_positions = static_cast<std::uint32_t>(arrived);
  REQUIRE(scored.rig.submit(again));
  scored.rig.run();
  CHECK(scored.rig.outcome("score").prompt == expected());
}

TEST_CASE("prompt logprobs: a preempted prompt continues after the positions that arrived") {
  EngineRig sizes;
  const std::size_t block = sizes.engine().kv_block_size_bytes();
  RigOptions options;
  options.limits.token_budget = 5;
  options.extent_bytes = block * (5 + 2 * record_block_count({sizes.config().n_context}, block));
  Scored scored(options);
  REQUIRE(scored.rig.submit(
      scored.rig.request("t", scored.lease, "older", scored.rig.encode("The dog"), 35)));
  REQUIRE(scored.rig.step());
  REQUIRE(scored.rig.submit(scored.scoring("score")));
  while (scored.rig.engine().scheduler().has_work()) {
    for (const GrowthRequest& growth : scored.rig.engine().take_growth_requests())
      scored.rig.engine().deny_growth(growth);
    REQUIRE(scored.rig.step());
  }
  CHECK(scored.rig.outcome("score").preemptions.size() == 1);
  CHECK(scored.rig.outcome("score").prompt == expected());
}

TEST_CASE("prompt logprobs: a prompt that is not read waits, and others do not") {
  RigOptions options;
  options.reads_logprobs = false;
  Scored scored(options);
  const std::vector<TokenId> longer(400, scored.text[3]);
  PromptRequest unread = scored.rig.request("t", scored.lease, "unread", longer, 0);
  unread.prompt_logprobs = 20;
  REQUIRE(scored.rig.submit(unread));
  REQUIRE(scored.rig.submit(scored.rig.request("t", scored.lease, "other", scored.text, 20)));
  scored.rig.run(60);
  const std::size_t sent = scored.rig.outcome("unread").prompt.size();
  CHECK(sent * 21 <= kMaxUntakenLogprobs + 21);
  CHECK(sent > 60);
  CHECK(scored.rig.outcome("other").tokens.size() == 20);
  scored.rig.engine().scheduler().running().logprobs_taken({"unread"}, kMaxUntakenLogprobs);
  scored.rig.run(10);
  CHECK(scored.rig.outcome("unread").prompt.size() > sent);
}

TEST_CASE("prompt logprobs: a prompt that fills the context is scored, and emits no token") {
  Scored scored;
  const std::vector<TokenId> full(scored.rig.config().n_context, scored.text[3]);
  PromptRequest request = scored.rig.request("t", scored.lease, "full", full, 0);
  request.prompt_logprobs = 0;
  REQUIRE(scored.rig.submit(request));
  scored.rig.run();
  CHECK(scored.rig.outcome("full").prompt.size() == full.size());
  request.engine_request_id = {"longer"};
  request.max_emitted_tokens = 1;
  CHECK(scored.rig.submit(request).error().code == Errc::PromptTooLong);
}

}  // namespace leasehold::testing
