/// Models with recurrent layers: proposed tokens change no text, because a step with a wrong one
/// keeps nothing of its state.
#include <catch2/catch.hpp>

#include "tests/property/known_texts.hpp"
#include "tests/support/generated_model.hpp"

namespace leasehold::testing {
namespace {

/// Two texts of a model with one arithmetic, with their log probabilities.
struct ProposedTexts {
  explicit ProposedTexts(RigOptions options) : rig(std::move(options)) {
    for (const char* tenant : {"t0", "t1"}) {
      prompts.push_back({1, 260, 267, static_cast<TokenId>(300 + prompts.size()), 267, 260, 267});
      PromptRequest request = rig.request(tenant, rig.grant(tenant), tenant, prompts.back(), 24);
      request.sampling = {.temperature = 1.0f, .seed = 5, .ignore_eos = true, .top_logprobs = 2};
      REQUIRE(rig.submit(request));
    }
    for (; rig.engine().scheduler().has_work(); ++steps) REQUIRE(rig.step());
  }
  Texts texts() {
    Texts all = prompts;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<TokenId>& emitted = rig.outcome("t" + std::to_string(i)).tokens;
      REQUIRE(emitted.size() == 24);
      all[i].insert(all[i].end(), emitted.begin(), emitted.end());
    }
    return all;
  }
  bool has_logprobs_of(ProposedTexts& other) {
    return rig.outcome("t0").logprobs == other.rig.outcome("t0").logprobs &&
           rig.outcome("t1").logprobs == other.rig.outcome("t1").logprobs;
  }
  ProposalCounters proposals() const { return rig.engine().scheduler().proposals().counters(); }

  EngineRig rig;
  Texts prompts;
  int steps = 0;
};

}  // namespace

TEST_CASE("recurrent: proposed tokens change no text of any family, right or wrong") {
  const Family family =
      GENERATE(from_range(std::begin(kRecurrentFamilies), std::end(kRecurrentFamilies)));
  const Arithmetic arithmetic = GENERATE(Arithmetic::F32, Arithmetic::Int8);
  CAPTURE(family.name, name(arithmetic));
  const GeneratedModel model(family);
  const RigOptions options{.model_path = model.path(), .arithmetic = arithmetic};
  ProposedTexts single(options);
  const Texts expected = single.texts();

  ProposedTexts wrong(speculating(options, known(expected, none_right)));
  CHECK(wrong.texts() == expected);
  CHECK(wrong.proposals().proposed > 0);
  CHECK(wrong.proposals().accepted == 0);

  ProposedTexts some(speculating(options, known(expected, some_right)));
  CHECK(some.texts() == expected);
  CHECK(some.has_logprobs_of(single));
  CHECK(some.proposals().accepted > 0);
  CHECK(some.proposals().accepted < some.proposals().proposed);

  ProposedTexts right(speculating(options, known(expected, all_right)));
  CHECK(right.texts() == expected);
  CHECK(right.has_logprobs_of(single));
  CHECK(right.steps * 3 < single.steps);
}

TEST_CASE("recurrent: the proposals of a draft model change no text") {
  const GeneratedModel model(family_named("qwen35"));
  RigOptions options{.model_path = model.path()};
  const Texts expected = ProposedTexts(options).texts();
  options.draft_path = bundled_model_path();
  ProposedTexts drafted(speculating(options));
  CHECK(drafted.texts() == expected);
  CHECK(drafted.proposals().proposed > 0);
}

}  // namespace leasehold::testing
