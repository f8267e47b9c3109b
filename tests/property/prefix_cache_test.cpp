/// A prompt that finds its beginning in the cache gives the bits of one that computes it.
#include <catch2/catch.hpp>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kCachedTokens = 20;
constexpr std::uint32_t kChunkBudget = 24;

/// Longer than four blocks.
std::string cacheable_text() {
  std::string text = prompts()[0];
  for (std::size_t i = 1; i < prompts().size(); ++i) text += " and " + prompts()[i];
  return text + " and " + text;
}

PromptRequest cacheable_request(const EngineRig& rig, LeaseId lease, const std::string& id,
                                const std::string& tenant = "t") {
  return rig.request(tenant, lease, id, rig.encode(cacheable_text()), kCachedTokens);
}

struct MeasuredRun {
  std::vector<TokenId> tokens;
  Run logits;
  std::uint32_t rows = 0;  // of the prompt, committed

  bool operator==(const MeasuredRun& other) const {
    return tokens == other.tokens && same_bits(logits, other.logits);
  }
};

/// Runs what is submitted, and returns what one request got.
MeasuredRun measured_run(EngineRig& rig, const std::string& id) {
  MeasuredRun got;
  const auto begun = static_cast<std::ptrdiff_t>(rig.outcome(id).tokens.size());
  while (rig.engine().scheduler().has_work()) {
    rig.step_sampler().set_interval(Duration(1));
    rig.clock().advance(Duration(1));
    const Result<StepReport> report = rig.step();
    REQUIRE(report);
    append_last_logits(rig, id, got.logits);
    if (report->sample) {
      for (const auto& [tenant, tokens] : report->sample->tenants) got.rows += tokens.prefill;
    }
    for (const GrowthRequest& growth : rig.engine().take_growth_requests()) rig.grow(growth.lease);
  }
  const std::vector<TokenId>& all = rig.outcome(id).tokens;
  got.tokens.assign(all.begin() + begun, all.end());
  return got;
}

RigOptions in_chunks(BackendUnderTest backend, KvType kv_type = KvType::F16) {
  RigOptions options = backend.options(kv_type);
  options.limits = {.max_batch_size = 8, .token_budget = kChunkBudget};
  return options;
}

MeasuredRun cold_run(const RigOptions& options) {
  EngineRig rig(options);
  REQUIRE(rig.submit(cacheable_request(rig, rig.grant("t"), "cold")));
  return measured_run(rig, "cold");
}

PrefixCounters prefix_counters(const EngineRig& rig) {
  return rig.engine().scheduler().tenancies().prefix_counters();
}

/// One tenant submits the text of another, which ran it before if `is_cached`.
MeasuredRun guess_run(EngineRig& rig, bool is_cached) {
  const LeaseId victim = rig.grant("victim");
  const LeaseId curious = rig.grant("curious");
  if (is_cached) {
    REQUIRE(rig.submit(cacheable_request(rig, victim, "secret", "victim")));
    rig.run();
  }
  REQUIRE(rig.submit(cacheable_request(rig, curious, "guess", "curious")));
  return measured_run(rig, "guess");
}

}  // namespace

TEST_CASE("prefix cache: a warm prompt gives the bits of a cold one, and computes the rest only") {
  const BackendUnderTest backend{GENERATE(from_range(with_cuda({0, 1, 2})))};
  const KvType kv_type = GENERATE(KvType::F32, KvType::F16, KvType::Q8_0);
  if (backend.is_cuda() && kv_type != KvType::F16) return;  // slow, and a card has no q8_0
  CAPTURE(backend);
  EngineRig rig(in_chunks(backend, kv_type));
  const LeaseId lease = rig.grant("t");
  const auto length = static_cast<std::uint32_t>(rig.encode(cacheable_text()).size());
  REQUIRE(length > 4 * KvLayout::kBlockTokens);

  REQUIRE(rig.submit(cacheable_request(rig, lease, "cold")));
  const MeasuredRun cold = measured_run(rig, "cold");
  REQUIRE(cold.rows == length);
  REQUIRE(cold.logits.size() == kCachedTokens);
  const std::uint32_t hit = (length - 1) / KvLayout::kBlockTokens;
  REQUIRE(rig.submit(cacheable_request(rig, lease, "warm")));
  const MeasuredRun warm = measured_run(rig, "warm");
  REQUIRE(warm == cold);
  REQUIRE(warm.rows == length - hit * KvLayout::kBlockTokens);
  REQUIRE(prefix_counters(rig).hits == hit);
}

TEST_CASE("prefix cache: sequences that use the same blocks at once give the bits of one alone") {
  const BackendUnderTest backend{GENERATE(1u, 2u)};
  const MeasuredRun cold = cold_run(in_chunks(backend));
  EngineRig rig(in_chunks(backend));
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(cacheable_request(rig, lease, "first")));
  while (rig.outcome("first").tokens.empty()) REQUIRE(rig.step());
  for (const char* id : {"second", "third"}) REQUIRE(rig.submit(cacheable_request(rig, lease, id)));
  const MeasuredRun third = measured_run(rig, "third");
  REQUIRE(third == cold);
  REQUIRE(rig.outcome("first").tokens == cold.tokens);
  REQUIRE(rig.outcome("second").tokens == cold.tokens);
  REQUIRE(prefix_counters(rig).hits > 0);
}

TEST_CASE("prefix cache: a text that goes on with cached blocks of an answer gives the same bits") {
  EngineRig rig(in_chunks({1}));
  const LeaseId lease = rig.grant("t");
  const MeasuredRun cold = cold_run(in_chunks({1}));
  PromptRequest part = cacheable_request(rig, lease, "part");
  part.max_emitted_tokens = 16;  // decoded rows fill a block, too
  REQUIRE(rig.submit(part));
  rig.run();
  PromptRequest rest = cacheable_request(rig, lease, "rest");
  rest.emitted = rig.outcome("part").tokens;
  rest.rebound_from = LeaseId{200, 1};
  REQUIRE(rest.emitted.size() == 16);
  REQUIRE(rig.submit(rest));
  const MeasuredRun got = measured_run(rig, "rest");
  REQUIRE(got.tokens == std::vector(cold.tokens.begin() + 16, cold.tokens.end()));
  REQUIRE(same_bits(got.logits, Run(cold.logits.begin() + 16, cold.logits.end())));
  REQUIRE(prefix_counters(rig).hits == (rest.prompt.size() + 15) / KvLayout::kBlockTokens);
}

TEST_CASE("prefix cache: the prefill rows of a tenant do not depend on what another one cached") {
  EngineRig alone(in_chunks({1})), beside(in_chunks({1}));
  const MeasuredRun cold = guess_run(alone, false);
  const MeasuredRun guessed = guess_run(beside, true);
  REQUIRE(guessed.rows == cold.rows);
  REQUIRE(guessed == cold);
}

// Checks the counter alone, so that a leak that is planted fails it by a counter above 0.
TEST_CASE("prefix cache: a tenant that guesses another's text takes no block of that tenant") {
  EngineRig rig(in_chunks({1}));
  (void)guess_run(rig, true);
  REQUIRE(prefix_counters(rig).cross_tenant_hits == 0);
}

TEST_CASE(
    "prefix cache: a lease revoked during a prefill with shared blocks ends its sequences alone") {
  const BackendUnderTest backend{GENERATE(1u, 2u)};
  const MeasuredRun cold = cold_run(in_chunks(backend));
  UnitWatch watch;
  RigOptions options = in_chunks(backend);
  options.probe = &watch;
  for (const std::size_t at : {0u, 7u, 23u, 61u}) {
    EngineRig rig(options);
    const LeaseId lease = rig.grant("t");
    const LeaseId other = rig.grant("u");
    REQUIRE(rig.submit(cacheable_request(rig, lease, "first")));
    while (rig.outcome("first").tokens.empty()) REQUIRE(rig.step());
    PromptRequest longer = cacheable_request(rig, lease, "longer");
    const std::vector<TokenId> more = longer.prompt;
    longer.prompt.insert(longer.prompt.end(), more.begin(), more.end());
    REQUIRE(rig.submit(longer));
    REQUIRE(rig.submit(cacheable_request(rig, other, "bystander", "u")));
    REQUIRE(rig.step());
    REQUIRE(rig.sequence("longer")->blocks.cached().size() > 1);
    REQUIRE(rig.sequence("longer")->pending() > 1);
    watch.start(at, [&] { rig.revoke(lease); });
    REQUIRE(rig.step());
    watch.stop();
    REQUIRE(watch.acted());
    rig.run();
    for (const char* id : {"first", "longer"}) {
      REQUIRE(rig.completion(id).reason == CompletionReason::Revoked);
    }
    REQUIRE(rig.outcome("bystander").tokens == cold.tokens);
    const LeaseId again = rig.grant("t");
    PromptRequest rebind = cacheable_request(rig, again, "first");
    rebind.emitted = rig.outcome("first").tokens;
    rebind.rebound_from = lease;
    REQUIRE(rig.submit(rebind));
    rig.run();
    REQUIRE(rig.outcome("first").tokens == cold.tokens);
  }
}

}  // namespace leasehold::testing
