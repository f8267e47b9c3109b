/// Whatever is proposed, texts are those of single steps.
#include <algorithm>
#include <catch2/catch.hpp>
#include <new>

#include "tests/property/chosen_requests.hpp"
#include "tests/property/known_texts.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kLateTokens = 12;  // of the requests beside the sampling parameters

struct Heard {
  std::vector<TokenId> tokens;
  std::vector<std::optional<Logprobs>> logprobs;
  std::vector<std::uint32_t> positions;
  std::vector<CompletionReason> ends;
  bool operator==(const Heard&) const = default;
};

/// Requests of three tenants, submitted one after the other beside those that run.
class Batch {
 public:
  explicit Batch(RigOptions options) : rig_(limited(std::move(options))) {
    for (const char* tenant : {"t0", "t1", "t2"}) leases_.push_back(rig_.grant(tenant, 2));
  }

  std::map<std::string, Heard> run() {
    for (const SamplingParams& sampling : all_sampling_params()) submit(of(sampling));
    for (const std::uint32_t most : {1u, 2u, 3u, kLateTokens}) {
      PromptRequest greedy = of({.ignore_eos = true});
      greedy.max_emitted_tokens = most;
      submit(std::move(greedy));
    }
    // As the choices of `n`: one prompt, seeds of their own.
    for (const std::uint64_t seed : {1u, 2u})
      submit(of({.temperature = 1.0f, .seed = seed, .ignore_eos = true, .top_logprobs = 2}));
    finish();
    // The last token fills the context.
    PromptRequest full = of({.ignore_eos = true});
    full.prompt.assign(rig_.config().n_context - 7, full.prompt.back());
    submit(std::move(full));
    finish();
    return heard_;
  }
  Texts texts() const {
    Texts texts;
    for (const PromptRequest& request : requests_) {
      const std::vector<TokenId>& emitted = heard_.at(request.engine_request_id.value).tokens;
      texts.push_back(request.prompt);
      texts.back().insert(texts.back().end(), emitted.begin(), emitted.end());
    }
    return texts;
  }
  ProposalCounters proposals() const { return rig_.engine().scheduler().proposals().counters(); }
  int steps() const { return steps_; }

 private:
  static RigOptions limited(RigOptions options) {
    options.limits.token_budget = 40;
    return options;
  }
  PromptRequest of(const SamplingParams& sampling) const {
    return sampling_request(rig_, sampling, leases_[0], "r");
  }
  void submit(PromptRequest request) {
    const std::size_t which = requests_.size() % leases_.size();
    request.tenant = {"t" + std::to_string(which)};
    request.lease = leases_[which];
    request.engine_request_id = {"r" + std::to_string(requests_.size())};
    REQUIRE(rig_.submit(request));
    requests_.push_back(std::move(request));
    if (requests_.size() % 3 == 0) step();
  }
  void finish() {
    while (rig_.engine().scheduler().has_work()) step();
  }
  void step() {
    Result<StepReport> report = rig_.step();
    REQUIRE(report);
    ++steps_;
    for (const SchedulerEvent& event : report->events) {
      if (const auto* token = std::get_if<Token>(&event)) {
        Heard& heard = heard_[token->engine_request_id.value];
        heard.tokens.push_back(token->token);
        heard.logprobs.push_back(token->logprobs);
        heard.positions.push_back(token->position);
      }
      if (const auto* end = std::get_if<Completed>(&event)) {
        Heard& heard = heard_[end->engine_request_id.value];
        heard.ends.push_back(end->reason);
        REQUIRE(end->emitted_tokens == heard.tokens.size());
      }
    }
  }

  EngineRig rig_;
  std::vector<LeaseId> leases_;
  std::vector<PromptRequest> requests_;
  std::map<std::string, Heard> heard_;
  int steps_ = 0;
};

/// Lacks memory once it has proposed a token.
class OutOfMemory final : public TextProposer {
 public:
  using TextProposer::propose;
  void propose(std::span<const TokenId>, std::uint32_t, std::vector<TokenId>& proposals) override {
    proposals.push_back(7);
    throw std::bad_alloc();
  }
};

/// Counts its calls, and proposes nothing.
class CountedCalls final : public TextProposer {
 public:
  using TextProposer::propose;
  explicit CountedCalls(int& calls) : calls_(&calls) {}
  void propose(std::span<const TokenId>, std::uint32_t, std::vector<TokenId>&) override {
    ++*calls_;
  }

 private:
  int* calls_;
};

}  // namespace

TEST_CASE("speculation: a proposer without memory ends no text, and nothing is proposed") {
  const auto heard = [](RigOptions options) {
    EngineRig rig(std::move(options));
    REQUIRE(rig.submit(rig.request("t", rig.grant("t"), "r", rig.encode(prompts()[0]), 16)));
    rig.run();
    CHECK(rig.engine().scheduler().proposals().counters().proposed == 0);
    return rig.outcome("r").tokens;
  };
  const std::vector<TokenId> expected = heard({});
  REQUIRE(!expected.empty());
  CHECK(heard(speculating({}, [] { return std::make_shared<OutOfMemory>(); })) == expected);
}

TEST_CASE("speculation: nothing is proposed while a prompt is computed") {
  int calls = 0;
  RigOptions options = speculating({}, [&] { return std::make_shared<CountedCalls>(calls); });
  options.limits.token_budget = 40;
  EngineRig rig(std::move(options));
  const LeaseId lease = rig.grant("t", 2);
  PromptRequest first = rig.request("t", lease, "r", rig.encode(prompts()[0]), 40);
  first.sampling.ignore_eos = true;
  REQUIRE(rig.submit(first));
  while (rig.outcome("r").tokens.size() < 2) REQUIRE(rig.step());
  REQUIRE(calls > 0);
  REQUIRE(rig.submit(rig.request("t", lease, "s", std::vector<TokenId>(120, 9), 1)));
  const int before = calls;
  int steps = 0;
  for (; rig.outcome("s").completions.empty(); ++steps) REQUIRE(rig.step());
  REQUIRE(steps > 2);
  CHECK(calls == before);
  REQUIRE(rig.step());
  CHECK(calls > before);
}

TEST_CASE("speculation: tokens, log probabilities and ends are those of single steps") {
  const auto [threads, arithmetic] = GENERATE(table<std::uint32_t, Arithmetic>(
      {{1u, Arithmetic::Int8}, {2u, Arithmetic::F32}, {2u, Arithmetic::Int8}}));
  CAPTURE(threads, name(arithmetic));
  RigOptions options = BackendUnderTest{threads}.options();
  options.arithmetic = arithmetic;
  Batch single(options);
  const auto expected = single.run();
  const Texts texts = single.texts();
  REQUIRE(single.proposals().proposed == 0);

  Batch wrong(speculating(options, known(texts, none_right)));
  CHECK(wrong.run() == expected);
  CHECK(wrong.proposals().proposed > 0);
  CHECK(wrong.proposals().accepted == 0);
  CHECK(wrong.steps() == single.steps());

  Batch right(speculating(options, known(texts, all_right)));
  CHECK(right.run() == expected);
  CHECK(right.proposals().accepted > 0);
  CHECK(right.steps() < single.steps());

  Batch some(speculating(options, known(texts, some_right)));
  CHECK(some.run() == expected);
  CHECK(some.proposals().accepted > 0);
  CHECK(some.proposals().accepted < some.proposals().proposed);

  Batch unknown(speculating(options, [] { return std::make_shared<UnknownTokens>(); }));
  CHECK(unknown.run() == expected);
  CHECK(unknown.proposals().proposed == 0);

  Batch ngrams(speculating(options));
  CHECK(ngrams.run() == expected);

  RigOptions draft_options = speculating(options);
  draft_options.draft_path = bundled_model_path();
  Batch drafted(draft_options);
  CHECK(drafted.run() == expected);
  CHECK(drafted.proposals().accepted > 0);
  CHECK(drafted.steps() < single.steps());
}

TEST_CASE("speculation: on a GPU the texts are those of single steps") {
  for (const std::uint32_t cuda : cuda_backends()) {
    CAPTURE(BackendUnderTest{cuda});
    const auto heard = [&](bool speculates, const Texts& texts) {
      RigOptions options = BackendUnderTest{cuda}.options();
      if (speculates) options = speculating(options, known(texts, some_right));
      EngineRig rig(options);
      REQUIRE(rig.submit(rig.request("t", rig.grant("t"), "r", rig.encode(prompts()[0]), 16)));
      rig.run();
      REQUIRE((rig.engine().scheduler().proposals().counters().accepted > 0) == speculates);
      std::vector<TokenId> text = rig.encode(prompts()[0]);
      for (const TokenId token : rig.outcome("r").tokens) text.push_back(token);
      return text;
    };
    const std::vector<TokenId> expected = heard(false, {});
    REQUIRE(heard(true, {expected}) == expected);
  }
}

TEST_CASE("speculation: a repeated text takes fewer steps by what it repeats") {
  const auto text_in_steps = [](std::uint32_t speculate) {
    EngineRig rig({.limits = {.speculate = speculate}});
    PromptRequest request =
        rig.request("t", rig.grant("t"), "r", rig.encode("the cat sat. the cat sat. the cat"), 64);
    REQUIRE(rig.submit(request));
    int steps = 0;
    for (; rig.engine().scheduler().has_work(); ++steps) REQUIRE(rig.step());
    REQUIRE(rig.outcome("r").tokens.size() == 64);
    return std::pair(steps, rig.outcome("r").tokens);
  };
  const auto [single, expected] = text_in_steps(0);
  const auto [fewer, tokens] = text_in_steps(8);
  REQUIRE(tokens == expected);
  REQUIRE(fewer < single);
}

}  // namespace leasehold::testing
