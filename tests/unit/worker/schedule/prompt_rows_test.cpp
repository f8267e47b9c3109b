// How the prompt rows of one step are distributed, without a scheduler.
#include "worker/schedule/rows/prompt_rows.hpp"

#include <catch2/catch.hpp>

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kAnyWork = 1'000'000;
constexpr std::uint64_t kNoneIsShort = 0;

/// A tenant of weight 1 that was served `tokens` tokens.
struct Served {
  explicit Served(std::uint64_t tokens) : count(TokenCounters::cost(tokens, 1)) {
    account.quota.weight = 1;
    account.counter = &count;
  }
  TokenCounters::Count count;
  TenantAccount account;
};

Sequence prompt_of(std::uint32_t tokens) {
  return Sequence({.prompt = std::vector<TokenId>(tokens, 1), .max_emitted_tokens = 1}, 16);
}

}  // namespace

TEST_CASE("prompt rows: each chunk goes to the tenant that was served least") {
  Served one(0), other(8);
  Sequence first = prompt_of(64), second = prompt_of(64);
  PromptRows rows({.rows = 48, .work = kAnyWork, .short_work = kNoneIsShort});
  rows.add(first, one.account);
  rows.add(second, other.account);
  const std::vector<PlannedRows> parts = rows.give(16);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].n_rows == 32);
  CHECK(parts[1].n_rows == 16);
  CHECK(one.count == 0);  // the caller charges the rows
}

TEST_CASE("prompt rows: prompts with log probabilities share the rows with logits") {
  Served one(0);
  Sequence plain = prompt_of(64), scored = prompt_of(64), other = prompt_of(64);
  scored.request.prompt_logprobs = other.request.prompt_logprobs = 0;
  const auto rows_of = [&](std::uint32_t logit_rows) {
    PromptRows rows(
        {.rows = 256, .work = kAnyWork, .short_work = kNoneIsShort, .logit_rows = logit_rows});
    for (Sequence* each : {&scored, &other, &plain}) rows.add(*each, one.account);
    std::vector<std::uint32_t> counts;
    for (const PlannedRows& part : rows.give(16)) counts.push_back(part.n_rows);
    return counts;
  };
  CHECK(rows_of(20) == std::vector{21u, 1u, 64u});
  CHECK(rows_of(0) == std::vector{1u, 1u, 64u});
  CHECK(rows_of(500) == std::vector{64u, 64u, 64u});
}

TEST_CASE("prompt rows: a short prompt goes first until its tenant is a short prompt ahead") {
  Served one(0), other(10), far(100);
  Sequence long_prompt = prompt_of(64), near_prompt = prompt_of(8), far_prompt = prompt_of(8);
  PromptRows rows({.rows = 8, .work = kAnyWork, .short_work = 16});
  rows.add(long_prompt, one.account);
  rows.add(near_prompt, other.account);
  rows.add(far_prompt, far.account);
  const std::vector<PlannedRows> parts = rows.give(16);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].sequence == &near_prompt);
  CHECK(parts[0].n_rows == 8);
}

TEST_CASE("prompt rows: work limits the rows, except the first one of a step") {
  Served one(0);
  Sequence first = prompt_of(64), second = prompt_of(64);
  PromptRows none({.rows = 48, .work = 0, .short_work = kNoneIsShort});
  none.add(first, one.account);
  none.add(second, one.account);
  const std::vector<PlannedRows> only = none.give(16);
  REQUIRE(only.size() == 1);
  CHECK(only[0].n_rows == 1);

  PromptRows some({.rows = 48, .work = 20, .short_work = kNoneIsShort});
  some.add(first, one.account);
  const std::vector<PlannedRows> parts = some.give(16);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].n_rows == 20);
}

}  // namespace leasehold::testing
