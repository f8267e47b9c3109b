#include "worker/schedule/tenants/token_allowance.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold {
namespace {

constexpr std::int64_t kMinute_ns = 60'000'000'000;
constexpr TimePoint kStart{1'000};

/// Full, of this many tokens per minute.
TokenAllowance full(std::uint32_t tokens_per_minute) {
  TokenAllowance allowance(kStart);
  allowance.set_limit(tokens_per_minute, kStart);
  allowance.add(tokens_per_minute);
  return allowance;
}

wire::TenantQuota limited(std::uint32_t tokens_per_minute, std::uint32_t credit = 0) {
  return {.tenant = {"t"},
          .max_concurrent = 1,
          .tokens_per_minute = tokens_per_minute,
          .token_credit = credit};
}

TokenDemand all_of(std::uint64_t tokens) {
  return {.tokens = tokens, .needed = tokens};
}

}  // namespace

TEST_CASE("token allowance: a token is there after its part of a minute, and not one ns before") {
  for (const std::uint32_t limit : {1u, 7u, 1'000u, 9'999'999u, 10'000'000u}) {
    CAPTURE(limit);
    TokenAllowance allowance = full(limit);
    CHECK(allowance.wait_for(limit, kStart) == Duration::zero());
    allowance.charge(limit, kStart);
    const Duration wait = allowance.wait_for(1, kStart);
    CHECK(wait.count() == (kMinute_ns + limit - 1) / limit);
    CHECK(allowance.wait_for(1, kStart + wait - Duration(1)) == Duration(1));
    CHECK(allowance.wait_for(1, kStart + wait) == Duration::zero());
  }
}

TEST_CASE("token allowance: it starts empty and holds one minute's tokens, after any idle time") {
  TokenAllowance allowance(kStart);
  allowance.set_limit(10'000'000, kStart);
  CHECK(allowance.wait_for(1, kStart) > Duration::zero());
  const TimePoint late{std::numeric_limits<std::int64_t>::max()};
  CHECK(allowance.wait_for(10'000'000, late) == Duration::zero());
  CHECK(allowance.wait_for(10'000'001, late) == Duration(kMinute_ns / 10'000'000));
}

TEST_CASE("token allowance: a debt is paid by time, and the largest overflows nothing") {
  TokenAllowance allowance = full(1);
  for (int i = 0; i < 100; ++i) allowance.charge(~std::uint32_t{0}, kStart);
  const Duration wait = allowance.wait_for(~std::uint64_t{0}, kStart);
  CHECK(wait > Duration::zero());
  CHECK(allowance.wait_for(~std::uint64_t{0}, kStart + wait - Duration(1)) > Duration::zero());
  allowance.set_limit(10'000'000, kStart);
  CHECK(allowance.wait_for(1, kStart + std::chrono::hours(1)) == Duration::zero());
}

TEST_CASE("token allowance: a lowered limit caps what is there, a raised one fills faster") {
  TokenAllowance allowance = full(600);
  allowance.set_limit(60, kStart);
  CHECK(allowance.wait_for(60, kStart) == Duration::zero());
  CHECK(allowance.wait_for(61, kStart) == std::chrono::seconds(1));
  allowance.set_limit(600, kStart);
  CHECK(allowance.wait_for(70, kStart) == std::chrono::seconds(1));
}

TEST_CASE("token allowance: without a limit it neither fills nor loses what is there") {
  TokenAllowance allowance = full(600);
  allowance.charge(700, kStart);
  allowance.set_limit(0, kStart);
  const TimePoint later = kStart + std::chrono::hours(1);
  allowance.set_limit(600, later);
  CHECK(allowance.wait_for(0, later) == std::chrono::seconds(10));
}

TEST_CASE("token allowance: a clock that does not run and one that goes back fill nothing") {
  TokenAllowance allowance(kStart);
  allowance.set_limit(600, kStart);
  for (const std::int64_t ns : {1'000, 0, 1'000})
    CHECK(allowance.wait_for(1, TimePoint{ns}) == std::chrono::milliseconds(100));
}

TEST_CASE("token allowance: over random changes it is what plain arithmetic says") {
  const std::uint64_t seed = testing::test_seed();
  CAPTURE(seed);
  SeededRandom random(seed);
  TokenAllowance allowance(kStart);
  TimePoint now = kStart;
  std::int64_t limit = 0;
  std::int64_t parts = 0;
  for (int step = 0; step < 20'000; ++step) {
    const auto passed = static_cast<std::int64_t>(random.below(100'000'000'000));
    now = now + Duration(passed);
    if (limit > 0) parts = std::min(parts + passed * limit, limit * kMinute_ns);
    const auto amount = static_cast<std::uint32_t>(random.below(500));
    switch (random.below(4)) {
      case 0:
        limit = amount;
        allowance.set_limit(amount, now);
        if (limit > 0) parts = std::min(parts, limit * kMinute_ns);
        break;
      case 1:
        allowance.charge(amount, now);
        parts -= amount * kMinute_ns;
        break;
      default:
        break;
    }
    if (limit == 0) continue;
    const std::int64_t missing = std::max<std::int64_t>(0, amount * kMinute_ns - parts);
    REQUIRE(allowance.wait_for(amount, now).count() == (missing + limit - 1) / limit);
  }
}

TEST_CASE(
    "token allowances: a request takes what it asks for, and gives back what it did not use") {
  TokenAllowances allowances;
  allowances.set_quota(limited(600, 600), kStart);
  CHECK(allowances.take({"t"}, all_of(400), kStart));
  CHECK(allowances.take({"t"}, all_of(300), kStart).error().retry_after_ms == 10'000);
  allowances.give_back({"t"}, 350);
  CHECK(allowances.take({"t"}, all_of(300), kStart));
  CHECK_FALSE(allowances.take({"t"}, all_of(251), kStart));
  CHECK(allowances.take({"t"}, all_of(250), kStart));
}

TEST_CASE("token allowances: requests that come at once use no more than a minute's tokens") {
  TokenAllowances allowances;
  allowances.set_quota(limited(100, 100), kStart);
  int accepted = 0;
  for (int i = 0; i < 8; ++i) accepted += allowances.take({"t"}, all_of(100), kStart) ? 1 : 0;
  CHECK(accepted == 1);
  CHECK(allowances.take({"t"}, all_of(100), kStart).error().retry_after_ms == 60'000);
}

TEST_CASE("token allowances: a refusal says in ms when this request is accepted") {
  TokenAllowances allowances;
  allowances.set_quota(limited(600, 10), kStart);
  const auto refused = allowances.take({"t"}, all_of(13), kStart);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::QuotaTokens);
  CHECK(refused.error().retry_after_ms == 300);
  CHECK(refused.error().detail.find("--tokens-per-minute") != std::string::npos);
  CHECK(allowances.take({"t"}, all_of(12), kStart).error().retry_after_ms == 200);
  CHECK_FALSE(allowances.take({"t"}, all_of(13), kStart + std::chrono::milliseconds(299)));
  CHECK(allowances.take({"t"}, all_of(13), kStart + std::chrono::milliseconds(300)));
}

TEST_CASE("token allowances: a request of more than a minute's tokens is refused for good") {
  TokenAllowances allowances;
  allowances.set_quota(limited(60, 60), kStart);
  const auto refused = allowances.take({"t"}, all_of(61), kStart);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::BadRequest);
  CHECK(refused.error().retry_after_ms == 0);
  CHECK(refused.error().detail.contains("60 per minute"));
  CHECK(allowances.take({"t"}, all_of(60), kStart));
}

TEST_CASE(
    "token allowances: a request beyond this worker's part needs a full allowance, and pays") {
  TokenAllowances allowances;
  wire::TenantQuota part = limited(60, 59);
  part.request_tokens = 100;
  allowances.set_quota(part, kStart);
  CHECK(allowances.most_per_request({"t"}) == 100u);
  CHECK(allowances.take({"t"}, all_of(101), kStart).error().code == Errc::BadRequest);
  CHECK(allowances.take({"t"}, all_of(100), kStart).error().retry_after_ms == 1'000);
  const TimePoint full = kStart + std::chrono::seconds(1);
  CHECK(allowances.take({"t"}, all_of(100), full));
  CHECK(allowances.take({"t"}, all_of(1), full).error().retry_after_ms == 41'000);
}

TEST_CASE("token allowances: a request without a limit of its own needs its prompt and one token") {
  TokenAllowances allowances;
  allowances.set_quota(limited(60, 9), kStart);
  const TokenDemand open{.tokens = 60, .needed = 10};
  CHECK(allowances.take({"t"}, open, kStart).error().retry_after_ms == 1'000);
  const TimePoint there = kStart + std::chrono::seconds(1);
  CHECK(allowances.take({"t"}, open, there));
  CHECK(allowances.take({"t"}, open, there).error().retry_after_ms == 60'000);  // not 2 minutes
  allowances.give_back({"t"}, 50);
  CHECK(allowances.take({"t"}, open, there).error().retry_after_ms == 10'000);
}

TEST_CASE("token allowances: a tenant without a limit is never refused, and a lifted one no more") {
  TokenAllowances allowances;
  CHECK(allowances.take({"t"}, all_of(500), kStart));
  CHECK_FALSE(allowances.most_per_request({"t"}));
  allowances.give_back({"t"}, 500);
  allowances.set_quota(limited(1), kStart);
  CHECK_FALSE(allowances.take({"t"}, all_of(1), kStart));
  CHECK(allowances.take({"other"}, all_of(1), kStart));
  allowances.set_quota({.tenant = {"t"}, .max_concurrent = 1}, kStart);
  CHECK_FALSE(allowances.most_per_request({"t"}));
  CHECK(allowances.take({"t"}, all_of(500), kStart));
}

TEST_CASE("token allowances: a tenant whose leases end keeps its balance and gains no time") {
  TokenAllowances allowances;
  allowances.set_quota(limited(60, 60), kStart);
  REQUIRE(allowances.take({"t"}, all_of(60), kStart));
  allowances.set_quota({.tenant = {"t"}}, kStart);
  allowances.give_back({"t"}, 20);  // its last request ended with the lease
  const TimePoint later = kStart + std::chrono::hours(1);
  allowances.set_quota(limited(60, 10), later);  // what the broker says that it gained
  CHECK(allowances.take({"t"}, all_of(31), later).error().retry_after_ms == 1'000);
  CHECK(allowances.take({"t"}, all_of(30), later));
}

// Requests take and give back at random; what they used never exceeds what the limit allowed.
TEST_CASE("token allowances: over any time no more is used than one minute's tokens and the rate") {
  const std::uint64_t seed = testing::test_seed();
  CAPTURE(seed);
  SeededRandom random(seed);
  constexpr std::uint32_t kLimit = 600;
  TokenAllowances allowances;
  allowances.set_quota(limited(kLimit, kLimit), kStart);
  TimePoint now = kStart;
  std::vector<std::uint64_t> running;
  std::uint64_t used = 0;
  for (int step = 0; step < 20'000; ++step) {
    now = now + std::chrono::milliseconds(random.below(2'000));
    const auto asked = static_cast<std::uint64_t>(1 + random.below(kLimit));
    if (random.below(2) == 0) {
      if (allowances.take({"t"}, all_of(asked), now)) running.push_back(asked);
    } else if (!running.empty()) {
      const auto unused = static_cast<std::uint64_t>(random.below(running.back() + 1));
      used += running.back() - unused;
      running.pop_back();
      allowances.give_back({"t"}, unused);
    }
    const auto passed_ms = static_cast<std::uint64_t>((now - kStart).count() / 1'000'000);
    REQUIRE(used <= kLimit + passed_ms * kLimit / 60'000 + 1);
  }
  CHECK(used > kLimit);
}

}  // namespace leasehold
