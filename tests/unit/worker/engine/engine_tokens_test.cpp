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
    engine().submissions().set_quota(
        {.tenant = {"t"},
         .max_concurrent = 8,
         .max_blocks = 1u << 20,
         .rates = {.tokens_per_minute = tokens_per_minute, .token_credit = credit}});
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

TEST_CASE("tokens per minute: what a request asks for is taken when it is accepted") {
  LimitedRig rig;
  rig.limit(600, 40);
  REQUIRE(rig.submit(rig.sized("first", 16, 20)));
  CHECK(rig.wait_ms("second", 5) == 200);  // 4 are left, and prompt and answer are 6
  rig.run();
  REQUIRE(rig.outcome("first").tokens.size() == 20);
  CHECK(rig.wait_ms("second", 5) == 200);
  rig.clock().advance(milliseconds(199));
  CHECK(rig.wait_ms("second", 5) == 1);
  rig.clock().advance(milliseconds(1));
  CHECK(rig.wait_ms("second", 5) == std::nullopt);
}

TEST_CASE("tokens per minute: what a request did not use is given back when it ends") {
  LimitedRig rig;
  rig.limit(600, 100);
  SECTION("by a cancellation while it runs") {
    REQUIRE(rig.submit(rig.sized("long", 4, 90)));
    for (int i = 0; i < 3; ++i) REQUIRE(rig.step());
    const auto emitted = rig.outcome("long").tokens.size();
    REQUIRE(emitted > 0);
    REQUIRE(rig.engine().cancel({"long"}));
    const auto left = static_cast<std::uint32_t>(96 - emitted);  // the prompt was computed
    CHECK(rig.wait_ms("next", left) == 100);
    CHECK(rig.wait_ms("next", left - 1) == std::nullopt);
  }
  SECTION("by a cancellation while it waits") {
    REQUIRE(rig.submit(rig.sized("long", 4, 90)));
    REQUIRE(rig.engine().cancel({"long"}));
    CHECK(rig.wait_ms("next", 100) == 100);
    CHECK(rig.wait_ms("next", 99) == std::nullopt);
  }
  SECTION("by the end of its lease") {
    const LeaseId other = rig.grant("t");  // lifts the limit
    rig.limit(600, 100);
    REQUIRE(rig.submit(rig.sized("long", 4, 90)));
    REQUIRE(rig.step());
    rig.revoke(rig.lease);
    REQUIRE(rig.step());
    rig.lease = other;
    CHECK(rig.wait_ms("next", 95) == 100);  // five were used, and 96 are asked for
    CHECK(rig.wait_ms("next", 94) == std::nullopt);
  }
}

TEST_CASE("tokens per minute: many requests at once use no more than the limit") {
  LimitedRig rig;
  rig.limit(100, 100);
  int accepted = 0;
  for (int i = 0; i < 8; ++i)
    accepted += rig.submit(rig.sized("r" + std::to_string(i), 10, 90)) ? 1 : 0;
  CHECK(accepted == 1);
  rig.run();
  CHECK(rig.wait_ms("next", 9) == 6'000);  // ten tokens of a hundred per minute
}

TEST_CASE("tokens per minute: an accepted request runs to its end, also under a lowered limit") {
  LimitedRig rig;
  rig.limit(600, 40);
  REQUIRE(rig.submit(rig.sized("long", 4, 30)));
  REQUIRE(rig.step());
  rig.limit(10);
  rig.run();
  CHECK(rig.completion("long").reason == CompletionReason::MaxTokensReached);
  CHECK(rig.outcome("long").tokens.size() == 30);
}

TEST_CASE("tokens per minute: a default limit is lowered to what a minute holds") {
  LimitedRig rig;
  rig.limit(60, 20);
  PromptRequest request = rig.sized("default", 10, 200);
  request.may_shorten = true;
  rig.engine().submissions().shorten(request);
  CHECK(request.max_emitted_tokens == 50);
  REQUIRE(rig.submit(request));  // the prompt and one token are there
  CHECK(rig.wait_ms("other", 1) == 42'000);
  rig.run();
  CHECK(rig.outcome("default").tokens.size() == 50);
  PromptRequest asked = rig.sized("asked", 10, 200);
  rig.engine().submissions().shorten(asked);
  CHECK(asked.max_emitted_tokens == 200);
  const Error refused = rig.submit(asked).error();
  CHECK(refused.code == Errc::BadRequest);
  CHECK(refused.retry_after_ms == 0);
}

TEST_CASE("tokens per minute: cached blocks of a prompt are given back when it is admitted") {
  LimitedRig rig;
  rig.limit(600, 600);
  for (const char* id : {"cold", "warm"}) {
    REQUIRE(rig.submit(rig.sized(id, 33, 1)));
    rig.run();
  }
  REQUIRE(rig.engine().scheduler().tenancies().prefix_counters().hits == 2);
  // 34 were taken by the cold prompt and 2 by the warm one: 564 are left.
  CHECK(rig.wait_ms("a", 300) == std::nullopt);
  CHECK(rig.wait_ms("b", 263) == 100);
}

TEST_CASE("tokens per minute: a raised or lifted limit holds at once") {
  LimitedRig rig;
  rig.limit(60);
  CHECK(rig.wait_ms("r", 5) == 6'000);
  rig.limit(6'000);
  CHECK(rig.wait_ms("r", 5) == 60);
  rig.engine().submissions().set_quota(
      {.tenant = {"t"}, .max_concurrent = 8, .max_blocks = 1u << 20});
  CHECK(rig.wait_ms("r", 6) == std::nullopt);
}

TEST_CASE(
    "tokens per minute: a request that can never run is refused for that, without a time to wait") {
  LimitedRig rig;
  rig.limit(2);
  CHECK(rig.submit(rig.sized("long", rig.config().n_context, 1)).error().code ==
        Errc::PromptTooLong);
  CHECK(rig.submit(rig.request("t", rig.lease, "empty", {}, 1)).error().code == Errc::BadRequest);
  CHECK(rig.wait_ms("r", 1) == 60'000);
}

TEST_CASE("tokens per minute: one tenant's limit does not change what another gets") {
  LimitedRig rig;
  rig.limit(60);
  const LeaseId other = rig.grant("u");
  CHECK(rig.wait_ms("r", 5) == 6'000);
  REQUIRE(rig.submit(rig.request("u", other, "u", {5, 6, 7}, 20)));
  rig.run();
  CHECK(rig.outcome("u").tokens.size() == 20);
  CHECK(rig.wait_ms("r", 5) == 6'000);
}

}  // namespace leasehold::testing
