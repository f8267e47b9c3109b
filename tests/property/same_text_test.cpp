/// Chunks, rebinds and other requests do not change the text of a request.
#include <catch2/catch.hpp>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTextTokens = 10;

struct TestRequest {
  std::string text;
  SamplingParams sampling{.ignore_eos = true};
};

PromptRequest text_request(const EngineRig& rig, const TestRequest& asked, LeaseId lease,
                           const std::string& id) {
  PromptRequest request = rig.request("t", lease, id, rig.encode(asked.text), kTextTokens);
  request.sampling = asked.sampling;
  return request;
}

std::vector<TokenId> text_alone(const TestRequest& asked, RigOptions options = {}) {
  EngineRig rig(std::move(options));
  REQUIRE(rig.submit(text_request(rig, asked, rig.grant("t"), "r")));
  rig.run();
  REQUIRE(rig.outcome("r").tokens.size() == kTextTokens);
  return rig.outcome("r").tokens;
}

TestRequest warm(const std::string& text, std::uint64_t seed) {
  return {.text = text, .sampling = {.temperature = 1.0f, .seed = seed, .ignore_eos = true}};
}

}  // namespace

TEST_CASE("same text: a prompt in chunks gives the text of a whole prompt") {
  const TestRequest asked{.text = prompts()[5]};
  const std::vector<TokenId> whole = text_alone(asked);
  for (const std::uint32_t budget : {1u, 7u, 16u, 256u}) {
    CAPTURE(budget);
    REQUIRE(text_alone(asked, {.limits = {.token_budget = budget}}) == whole);
    REQUIRE(text_alone(asked, {.threads = 2, .limits = {.token_budget = budget}}) == whole);
  }
}

TEST_CASE("same text: on a GPU a prompt in chunks gives the text of a whole prompt") {
  const TestRequest asked{.text = prompts()[5]};
  for (const std::uint32_t cuda : cuda_backends()) {
    const std::vector<TokenId> whole = text_alone(asked, BackendUnderTest{cuda}.options());
    for (const std::uint32_t budget : {1u, 7u}) {
      CAPTURE(BackendUnderTest{cuda}, budget);
      RigOptions options = BackendUnderTest{cuda}.options();
      options.limits.token_budget = budget;
      REQUIRE(text_alone(asked, options) == whole);
    }
  }
}

TEST_CASE("same text: a request rebound after any token gives the same text") {
  const BackendUnderTest backend;  // for GPUs see cuda_engine_test.cpp
  const TestRequest asked = GENERATE(TestRequest{prompts()[3]}, warm(prompts()[0], 11));
  const std::vector<TokenId> undisturbed = text_alone(asked, backend.options());
  EngineRig rig(backend.options());
  for (std::uint32_t cut = 0; cut < kTextTokens; ++cut) {
    CAPTURE(backend, cut, asked.text);
    rig.clear_outcomes();
    const PromptRequest again =
        rebind_after(rig, text_request(rig, asked, rig.grant("t"), "r"), cut);
    REQUIRE(again.emitted.size() == cut);
    rig.run();
    REQUIRE(rig.outcome("r").tokens == undisturbed);
    for (std::uint32_t i = 0; i < kTextTokens; ++i) REQUIRE(rig.outcome("r").positions[i] == i);
    rig.drop(*again.rebound_from);
    rig.drop(again.lease);
  }
}

TEST_CASE("same text: the index in the batch does not change a request's text") {
  const std::vector<TestRequest> all{{prompts()[0]},
                                     warm(prompts()[1], 1),
                                     {prompts()[3]},
                                     warm(prompts()[1], 2),
                                     warm(prompts()[6], 3)};
  std::vector<std::vector<TokenId>> expected;
  for (const TestRequest& asked : all) expected.push_back(text_alone(asked));
  REQUIRE(expected[1] != expected[3]);  // the seed matters
  for (std::size_t shift = 0; shift < all.size(); ++shift) {
    EngineRig rig({.threads = 2});
    const LeaseId lease = rig.grant("t");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t which = (i + shift) % all.size();
      REQUIRE(rig.submit(text_request(rig, all[which], lease, "r" + std::to_string(which))));
      REQUIRE(rig.step());  // the others are at other positions
    }
    rig.run();
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(shift, i);
      REQUIRE(rig.outcome("r" + std::to_string(i)).tokens == expected[i]);
    }
  }
}

TEST_CASE(
    "sequence record: the record in the tenant's memory matches the sequence after every commit") {
  EngineRig rig({.limits = {.token_budget = 8}});
  const LeaseId lease = rig.grant("t");
  PromptRequest request = text_request(rig, warm(prompts()[3], 5), lease, "r");
  request.engine_request_id = {"t/r"};  // as the tenant server names it
  REQUIRE(rig.submit(request));
  int commits = 0;
  for (; rig.engine().scheduler().has_work(); ++commits) {
    const Result<StepReport> report = rig.step();
    REQUIRE(report);
    const Sequence* sequence = rig.sequence("t/r");
    if (sequence == nullptr) continue;
    REQUIRE(report->summary.per_seq_kv_positions == std::vector{sequence->blocks.committed()});
    const auto bytes = rig.bytes_of(lease, sequence->blocks.record_blocks());
    const Result<SequenceRecord> record = read_record(bytes, {rig.config().n_context});
    REQUIRE(record);
    REQUIRE(record->engine_request_id == request.engine_request_id);
    REQUIRE(record->sampling.seed == 5);
    REQUIRE(record->sampling.temperature == 1.0f);
    REQUIRE(record->prompt_tokens == request.prompt.size());
    REQUIRE(record->max_emitted_tokens == kTextTokens);
    REQUIRE(record->committed == sequence->blocks.committed());
    REQUIRE(record->tokens == sequence->tokens);
    REQUIRE(std::ranges::equal(record->blocks, sequence->blocks.blocks_of(record->committed)));
  }
  REQUIRE(commits > static_cast<int>(kTextTokens));
}

}  // namespace leasehold::testing
