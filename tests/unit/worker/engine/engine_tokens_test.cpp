// Limits on tokens per minute, with a real engine.
#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

using std::chrono::milliseconds;

/// One tenant with a lease and a limit. The clock moves only when a test moves it.
struct LimitedRig : EngineRig {
  LeaseId lease = grant("t");

  void limit(std::uint32_t tokens_per_minute, std::uint32_t credit = 0) {
    engine().set_quota({.tenant = {"t"},
                        .max_concurrent = 8,
                        .max_blocks = 1u << 20,
                        .tokens_per_minute = tokens_per_minute,
                        .token_credit = credit});
  }
  PromptRequest sized(const std::string& id, std::uint32_t prompt_tokens, std::uint32_t emitted) {
    std::vector<TokenId> prompt(prompt_tokens);
    for (std::uint32_t i = 0; i < prompt_tokens; ++i) prompt[i] = static_cast<TokenId>(5 + i % 400);
    return request("t", lease, id, std::move(prompt), emitted);
  }
  /// The time that a refusal asks to wait; nothing when the request is accepted.
  std::optional<std::int64_t> wait_ms(const std::string& id, std::uint32_t prompt_tokens) {
    const Result<void> submitted = submit(sized(id, prompt_tokens, 1));
    if (submitted) return std::nullopt;
    CHECK(submitted.error().code == Errc::QuotaTokens);
    CHECK(submitted.error().scope == FailureScope::Tenant);
    return submitted.error().retry_after_ms;
  }
};

}  // namespace

TEST_CASE(
    "tokens per minute: computed prompts and emitted tokens count, and time gives them back") {
  LimitedRig rig;
  rig.limit(600, 20);
  REQUIRE(rig.submit(rig.sized("first", 16, 4)));
  CHECK(rig.wait_ms("second", 5) == 100);  // the accepted prompt is counted before it is computed
  rig.run();
  REQUIRE(rig.outcome("first").tokens.size() == 4);
  CHECK(rig.wait_ms("second", 5) == 500);
  rig.clock().advance(milliseconds(499));
  CHECK(rig.wait_ms("second", 5) == 1);
  rig.clock().advance(milliseconds(1));
  CHECK(rig.wait_ms("second", 5) == std::nullopt);
}

TEST_CASE("tokens per minute: an accepted request runs to its end, and what it exceeds is paid") {
  LimitedRig rig;
  rig.limit(600, 10);
  REQUIRE(rig.submit(rig.sized("long", 4, 30)));
  REQUIRE(rig.step());
  rig.limit(60);
  rig.run();
  CHECK(rig.outcome("long").completions.at(0).reason == CompletionReason::MaxTokensReached);
  CHECK(rig.outcome("long").tokens.size() == 30);
  CHECK(rig.wait_ms("next", 1) == 25'000);  // 34 of 10 are used, and 1 is asked for
}

TEST_CASE("tokens per minute: cached blocks of a prompt are not counted") {
  LimitedRig rig;
  rig.limit(600, 600);
  for (const char* id : {"cold", "warm"}) {
    REQUIRE(rig.submit(rig.sized(id, 33, 1)));
    rig.run();
  }
  REQUIRE(rig.engine().scheduler().prefix_counters().hits == 2);
  // 34 were counted for the cold prompt and 2 for the warm one: 564 are left.
  CHECK(rig.wait_ms("a", 300) == std::nullopt);
  CHECK(rig.wait_ms("b", 265) == 100);
}

TEST_CASE("tokens per minute: a raised or lifted limit holds at once") {
  LimitedRig rig;
  rig.limit(60);
  CHECK(rig.wait_ms("r", 6) == 6'000);
  rig.limit(6'000);
  CHECK(rig.wait_ms("r", 6) == 60);
  rig.engine().set_quota({.tenant = {"t"}, .max_concurrent = 8, .max_blocks = 1u << 20});
  CHECK(rig.wait_ms("r", 6) == std::nullopt);
}

TEST_CASE(
    "tokens per minute: a request that can never run is refused for that, without a time to wait") {
  LimitedRig rig;
  rig.limit(1);
  CHECK(rig.submit(rig.sized("long", rig.config().n_context, 1)).error().code ==
        Errc::PromptTooLong);
  CHECK(rig.submit(rig.request("t", rig.lease, "empty", {}, 1)).error().code == Errc::BadRequest);
  CHECK(rig.wait_ms("r", 1) == 60'000);
}

TEST_CASE("tokens per minute: one tenant's limit does not change what another gets") {
  LimitedRig rig;
  rig.limit(60);
  const LeaseId other = rig.grant("u");
  CHECK(rig.wait_ms("r", 6) == 6'000);
  REQUIRE(rig.submit(rig.request("u", other, "u", {5, 6, 7}, 20)));
  rig.run();
  CHECK(rig.outcome("u").tokens.size() == 20);
  CHECK(rig.wait_ms("r", 6) == 6'000);
}

}  // namespace leasehold::testing
