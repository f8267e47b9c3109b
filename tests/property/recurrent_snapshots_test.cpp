/// Models with recurrent layers: what a text with wrong proposals leaves in the prefix cache.
#include <catch2/catch.hpp>

#include "tests/property/known_texts.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kAnswerTokens = 40;

RigOptions hybrid_options() {
  return {.model_path = test_data_path("models-2026/tiny-qwen35-f32.gguf"),
          .extent_bytes = 32u << 20};
}

/// Computes the answer to a prompt under a lease.
const RequestOutcome& ask(EngineRig& rig, LeaseId lease, const std::string& id,
                          const std::vector<TokenId>& prompt) {
  PromptRequest request = rig.request("t", lease, id, prompt, kAnswerTokens);
  request.sampling = {.temperature = 1.0f, .seed = 5, .ignore_eos = true};
  REQUIRE(rig.submit(request));
  rig.run();
  REQUIRE(rig.outcome(id).tokens.size() == kAnswerTokens);
  return rig.outcome(id);
}

/// The answer without proposals and without a cache.
std::vector<TokenId> undisturbed(const std::vector<TokenId>& prompt) {
  EngineRig rig(hybrid_options());
  return ask(rig, rig.grant("t"), "r", prompt).tokens;
}

std::vector<TokenId> random_tokens(std::uint64_t seed, std::uint32_t count) {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(random_at(seed, i) % 200 + 20));
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> first, const std::vector<TokenId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

TEST_CASE("recurrent: a text starts at the snapshot that one with wrong proposals left") {
  constexpr std::uint32_t kAt = kSnapshotPositions;
  const std::vector<TokenId> prompt = random_tokens(12, kAt - 15);
  const Texts texts{joined(prompt, undisturbed(prompt))};
  EngineRig rig(speculating(hybrid_options(), known(texts, some_right)));
  const LeaseId lease = rig.grant("t");
  CHECK(joined(prompt, ask(rig, lease, "r", prompt).tokens) == texts[0]);
  const ProposalCounters& counters = rig.engine().scheduler().proposals().counters();
  CHECK(counters.accepted > 0);
  CHECK(counters.accepted < counters.proposed);

  const auto other = joined({texts[0].begin(), texts[0].begin() + kAt}, random_tokens(84, 9));
  const RequestOutcome& outcome = ask(rig, lease, "other", other);
  CHECK(outcome.tokens == undisturbed(other));
  CHECK(outcome.completions.at(0).cached_tokens == kAt);
}

TEST_CASE("recurrent: the next question starts where a text with wrong proposals ended") {
  const std::vector<TokenId> prompt = random_tokens(13, 25);
  const Texts texts{joined(prompt, undisturbed(prompt))};
  EngineRig rig(speculating(hybrid_options(), known(texts, none_right)));
  const LeaseId lease = rig.grant("t");
  CHECK(joined(prompt, ask(rig, lease, "r", prompt).tokens) == texts[0]);
  const auto next = joined(texts[0], random_tokens(85, 8));
  const RequestOutcome& outcome = ask(rig, lease, "next", next);
  CHECK(outcome.tokens == undisturbed(next));
  CHECK(outcome.completions.at(0).cached_tokens > prompt.size());
}

}  // namespace leasehold::testing
