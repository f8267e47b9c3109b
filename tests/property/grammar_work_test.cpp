/// Work on grammars is bounded in each step and shared by tenant. It changes no text, and a request
/// ends within one slice of it.
#include <catch2/catch.hpp>

#include "tests/property/four_tenants.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

// What the last step of a slice may add, as long as the matcher drops no states.
constexpr std::size_t kMostInOneStep = 2 * GrammarMatcher::kMaxStacks;
constexpr std::uint32_t kGrammarTokens = 16;

const GrammarSource kJsonGrammar{GrammarKind::JsonSchema, R"({"type":"array","minItems":16})"};
const GrammarSource kWordsGrammar{GrammarKind::Gbnf, R"(root ::= ([A-Z] [a-z]{1,6} " ")+ "!")"};

/// After each letter 2 000 copies of a rule that has 16 000 ways to be empty.
GrammarSource bomb() {
  std::string text = "root ::= ([A-Za-z]";
  for (int i = 0; i < 2000; ++i) text += " hollow";
  return {GrammarKind::Gbnf, text + ")*\nhollow ::= " + std::string(16'000, '|')};
}

struct GrammarRig {
  explicit GrammarRig(MaskLimits masks = {}, WeightsScope scope = WeightsScope::Model)
      : rig({.masks = masks, .weights_scope = scope, .probe = &watch}) {}

  PromptRequest request(const std::string& id, LeaseId lease, const GrammarSource& source) {
    PromptRequest request = rig.request(id, lease, id, rig.encode(prompts()[0]), kGrammarTokens);
    request.sampling = {.temperature = 1.2f, .seed = 5, .grammar = source};
    const auto grammar = compile_grammar(source);
    REQUIRE(grammar);
    if (*grammar) request.constraint = {*grammar, vocabulary};
    if (!*grammar) request.sampling.ignore_eos = true;
    return request;
  }
  /// One request for each of three tenants.
  void submit_honest() {
    for (const auto& [tenant, source] : kHonest)
      REQUIRE(rig.submit(request(tenant, rig.grant(tenant), source)));
  }
  std::vector<std::vector<TokenId>> honest_tokens() {
    std::vector<std::vector<TokenId>> tokens;
    for (const auto& [tenant, source] : kHonest) {
      REQUIRE_FALSE(rig.completion(tenant).error);
      tokens.push_back(rig.outcome(tenant).tokens);
    }
    return tokens;
  }
  LeaseId submit_bombs(int count) {
    const LeaseId lease = rig.grant("greedy", 8, 16);
    for (int i = 0; i < count; ++i) {
      PromptRequest bombed = request("greedy", lease, bomb());
      bombed.engine_request_id.value += std::to_string(i);
      REQUIRE(rig.submit(bombed));
    }
    return lease;
  }
  void check_bombs(int count) {
    for (int i = 0; i < count; ++i) {
      const RequestOutcome& outcome = rig.outcome("greedy" + std::to_string(i));
      REQUIRE(outcome.completions.size() == 1);
      REQUIRE(outcome.completions[0].error);
      CHECK(outcome.completions[0].error->code == Errc::BadRequest);
      CHECK_THAT(outcome.completions[0].error->detail, Catch::Contains("rule 'hollow'"));
      CHECK(outcome.tokens.empty());
    }
  }

  const std::map<std::string, GrammarSource> kHonest{
      {"json", kJsonGrammar}, {"plain", {}}, {"words", kWordsGrammar}};
  UnitWatch watch;
  EngineRig rig;
  std::shared_ptr<const GrammarVocabulary> vocabulary =
      std::make_shared<const GrammarVocabulary>(rig.tokenizer());
};

std::vector<std::vector<TokenId>> honest_alone() {
  GrammarRig bench;
  bench.submit_honest();
  bench.rig.run();
  return bench.honest_tokens();
}

}  // namespace

TEST_CASE("grammar work: expensive grammars delay a step by a bound and change no other text") {
  constexpr int kBombs = 16;
  GrammarRig bench;
  bench.submit_bombs(kBombs);
  bench.submit_honest();
  const std::size_t nodes = bench.vocabulary->pieces.node_count();
  const auto limits = MaskSchedule::limits_for({}, nodes, 4);
  std::size_t steps = 0;
  while (bench.rig.engine().scheduler().has_work()) {
    const auto report = bench.rig.step();
    REQUIRE(report);
    REQUIRE(report->mask_units < limits.step + kMostInOneStep);
    ++steps;
    // A request without a grammar gets its token in every step.
    REQUIRE(bench.rig.outcome("plain").tokens.size() ==
            std::min<std::size_t>(steps, kGrammarTokens));
    // So do honest grammars: their masks fit their tenant's part of the step.
    if (steps == kGrammarTokens)
      CHECK(bench.rig.outcome("json").tokens.size() >= kGrammarTokens - 4);
  }
  CHECK(bench.honest_tokens() == honest_alone());
  bench.check_bombs(kBombs);
}

TEST_CASE("grammar work: the size of slices and steps changes no text") {
  const auto expected = honest_alone();
  for (const MaskLimits& limits : {MaskLimits{.slice_units = 1, .step_units = 600},
                                   MaskLimits{.slice_units = 333, .step_units = 1'000},
                                   MaskLimits{.slice_units = 1u << 30, .step_units = 1u << 30}}) {
    CAPTURE(limits.slice_units);
    GrammarRig bench(limits);
    bench.submit_honest();
    bench.rig.run(1u << 20);
    CHECK(bench.honest_tokens() == expected);
  }
}

TEST_CASE("grammar work: a step without rows says that masks are computed") {
  GrammarRig bench;
  bench.submit_bombs(1);
  const auto first = bench.rig.step();
  REQUIRE(first);
  CHECK(first->ran);  // the prompt needs no mask
  const auto second = bench.rig.step();
  REQUIRE(second);
  CHECK_FALSE(second->ran);
  CHECK(second->awaits_masks);
  bench.rig.run();
  bench.check_bombs(1);
  const auto idle = bench.rig.step();
  REQUIRE(idle);
  CHECK_FALSE(idle->awaits_masks);
}

TEST_CASE("grammar work: a revoked or stopped request ends within one slice of any request") {
  for (const std::string victim : {"greedy", "plain"}) {
    for (const bool is_revoked : {true, false}) {
      CAPTURE(victim, is_revoked);
      GrammarRig bench({.slice_units = 1000});
      std::map<std::string, LeaseId> leases;
      leases["greedy"] = bench.submit_bombs(1);
      leases["plain"] = bench.rig.grant("plain");
      REQUIRE(bench.rig.submit(bench.request("plain", leases["plain"], {})));
      REQUIRE(bench.rig.step());
      const std::string id = victim == "greedy" ? "greedy0" : "plain";
      const auto act = [&] {
        if (is_revoked) return bench.rig.revoke(leases[victim]);
        REQUIRE(bench.rig.running_requests().stop(RequestId{id}, LocalStop::Cancelled));
      };
      std::size_t ends_at_next_unit = 0;
      bench.watch.start(0, act);
      bench.watch.act_again(1,
                            [&] { ends_at_next_unit = bench.rig.outcome(id).completions.size(); });

      REQUIRE(bench.rig.step());

      bench.watch.stop();
      REQUIRE(bench.watch.units().size() > 1);
      CHECK(bench.watch.units()[0].site == LaunchSite::Sampling);
      CHECK(bench.watch.units()[0].live == 0b11);
      CHECK(std::popcount(bench.watch.units()[1].live) == 1);
      CHECK(ends_at_next_unit == 1);
      CHECK(bench.rig.early_completions() == std::vector<bool>{true});
      CHECK(bench.rig.completion(id).reason ==
            (is_revoked ? CompletionReason::Revoked : CompletionReason::Cancelled));
      bench.rig.run();
      if (victim == "plain") bench.check_bombs(1);
      CHECK(bench.rig.outcome(id).completions.size() == 1);
    }
  }
}

TEST_CASE("grammar work: a lease unmapped during the last slice ends with its revocation") {
  GrammarRig bench({.slice_units = std::size_t{1} << 30});
  bench.submit_honest();
  const LeaseId lease = bench.rig.grant("late");
  REQUIRE(bench.rig.submit(bench.request("late", lease, {})));
  REQUIRE(bench.rig.step());
  bench.watch.start(1, [&] {  // the slice of the second of the two grammars
    bench.rig.revoke(lease);
    bench.rig.fence(lease);
    REQUIRE(bench.rig.engine().unmap_lease(lease));
  });

  REQUIRE(bench.rig.step());

  bench.watch.stop();
  REQUIRE(bench.watch.units().size() > 2);
  CHECK(bench.watch.units()[1].site == LaunchSite::Sampling);
  CHECK(bench.watch.units()[2].site != LaunchSite::Sampling);
  const Completed& end = bench.rig.completion("late");
  CHECK(end.reason == CompletionReason::Revoked);
  CHECK_FALSE(end.error);
  REQUIRE(end.revocation);
  CHECK(end.revocation->lease == lease);
  CHECK(end.revocation->reason == RevokeReason::Operator);
  bench.rig.run();
  CHECK(bench.honest_tokens() == honest_alone());
}

TEST_CASE("grammar work: revoked weights end it within one slice, and it continues") {
  GrammarRig bench({.slice_units = 1000});
  bench.submit_bombs(1);
  bench.submit_honest();
  REQUIRE(bench.rig.step());
  bench.watch.start(0, [&] { bench.rig.revoke(bench.rig.engine_lease()); });

  const auto failed = bench.rig.step();

  bench.watch.stop();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::EngineDecodeFailed);
  CHECK(bench.watch.units().size() == 1);
  bench.rig.restore_weights();
  bench.rig.run();
  CHECK(bench.honest_tokens() == honest_alone());
  bench.check_bombs(1);
}

TEST_CASE("grammar work: emitted tokens are read in slices, and those that do not fit are named") {
  const auto expected = honest_alone();
  GrammarRig bench({.slice_units = 1, .step_units = 50});
  PromptRequest fits = bench.request("words", bench.rig.grant("words"), kWordsGrammar);
  fits.rebound_from = bench.rig.grant("words");
  fits.emitted = expected[2];
  const TokenId last = fits.emitted.back();
  fits.emitted.pop_back();
  PromptRequest wrong = bench.request("json", bench.rig.grant("json"), kJsonGrammar);
  wrong.emitted = expected[0];
  wrong.emitted.insert(wrong.emitted.begin() + 1, bench.rig.encode("!").back());
  wrong.max_emitted_tokens += 1;
  REQUIRE(bench.rig.submit(fits));
  REQUIRE(bench.rig.submit(wrong));
  bench.rig.run(1u << 20);
  CHECK(bench.rig.outcome("words").tokens == std::vector{last});
  REQUIRE(bench.rig.completion("json").error);
  CHECK(bench.rig.completion("json").error->code == Errc::BadRequest);
  CHECK_THAT(bench.rig.completion("json").error->detail,
             Catch::StartsWith("emitted token 1 does not fit the grammar"));
}

}  // namespace leasehold::testing
