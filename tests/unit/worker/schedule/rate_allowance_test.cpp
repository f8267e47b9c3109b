#include "worker/schedule/tenants/rate_allowance.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold {
namespace {

constexpr std::int64_t kMinute_ns = 60'000'000'000;
constexpr TimePoint kStart{1'000};
const RateOwner kTenant{{"t"}, {}};

/// A full allowance of this many tokens per minute.
RateAllowance full(std::uint32_t tokens_per_minute) {
  RateAllowance allowance(kStart);
  allowance.set_limit(tokens_per_minute, kStart);
  allowance.add(tokens_per_minute);
  return allowance;
}

wire::TenantQuota limited(std::uint32_t tokens_per_minute, std::uint32_t credit = 0) {
  return {.tenant = {"t"},
          .max_concurrent = 1,
          .rates = {.tokens_per_minute = tokens_per_minute, .token_credit = credit}};
}

RateDemand all_of(std::uint64_t tokens) {
  return {.tokens = tokens, .needed = tokens};
}

}  // namespace

TEST_CASE(
    "rate allowance: a token is available after its part of a minute, and not one ns before") {
  for (const std::uint32_t limit : {1u, 7u, 1'000u, 9'999'999u, 10'000'000u}) {
    CAPTURE(limit);
    RateAllowance allowance = full(limit);
    CHECK(allowance.wait_for(limit, kStart) == Duration::zero());
    allowance.charge(limit, kStart);
    const Duration wait = allowance.wait_for(1, kStart);
    CHECK(wait.count() == (kMinute_ns + limit - 1) / limit);
    CHECK(allowance.wait_for(1, kStart + wait - Duration(1)) == Duration(1));
    CHECK(allowance.wait_for(1, kStart + wait) == Duration::zero());
  }
}

TEST_CASE("rate allowance: it starts empty and holds one minute's tokens, after any idle time") {
  RateAllowance allowance(kStart);
  allowance.set_limit(10'000'000, kStart);
  CHECK(allowance.wait_for(1, kStart) > Duration::zero());
  const TimePoint late{std::numeric_limits<std::int64_t>::max()};
  CHECK(allowance.wait_for(10'000'000, late) == Duration::zero());
  CHECK(allowance.wait_for(10'000'001, late) == Duration(kMinute_ns / 10'000'000));
}

TEST_CASE(
    "rate allowances: a part that starts empty keeps no tokens of an earlier part, but a debt") {
  RateAllowances allowances;
  const auto wait_ms = [&] {
    const auto taken = allowances.take({"t"}, {}, all_of(600), kStart);
    return taken ? 0 : taken.error().retry_after_ms;
  };
  allowances.set_quota(limited(600, 600), kStart);
  allowances.set_quota({.tenant = {"t"}}, kStart);  // withdrawn
  wire::TenantQuota next = limited(600, 60);
  next.rates.starts_empty = true;
  allowances.set_quota(next, kStart);
  CHECK(wait_ms() == 54'000);
  wire::TenantQuota same_part = limited(600, 540);
  same_part.rates.request_tokens = 1'000;
  allowances.set_quota(same_part, kStart);
  REQUIRE(allowances.take({"t"}, {}, {.tokens = 900, .needed = 600}, kStart));  // owes 300
  allowances.set_quota(next, kStart);
  CHECK(wait_ms() == 84'000);
}

TEST_CASE("rate allowances: the refusal of a tenant of a cell names `brokerctl cell`") {
  for (const bool of_cell : {false, true}) {
    RateAllowances allowances;
    wire::TenantQuota quota = limited(600, 600);
    quota.of_cell = of_cell;
    allowances.set_quota(quota, kStart);
    const auto refused = allowances.take({"t"}, {}, all_of(601), kStart);
    CHECK(refused.error().detail.contains("`brokerctl cell tenants admit --tokens") == of_cell);
  }
}

TEST_CASE("rate allowance: a debt is paid by time, and the largest overflows nothing") {
  RateAllowance allowance = full(1);
  for (int i = 0; i < 100; ++i) allowance.charge(~std::uint32_t{0}, kStart);
  const Duration wait = allowance.wait_for(~std::uint64_t{0}, kStart);
  CHECK(wait > Duration::zero());
  CHECK(allowance.wait_for(~std::uint64_t{0}, kStart + wait - Duration(1)) > Duration::zero());
  allowance.set_limit(10'000'000, kStart);
  CHECK(allowance.wait_for(1, kStart + std::chrono::hours(1)) == Duration::zero());
}

TEST_CASE("rate allowance: a lowered limit caps what is there, a raised one fills faster") {
  RateAllowance allowance = full(600);
  allowance.set_limit(60, kStart);
  CHECK(allowance.wait_for(60, kStart) == Duration::zero());
  CHECK(allowance.wait_for(61, kStart) == std::chrono::seconds(1));
  allowance.set_limit(600, kStart);
  CHECK(allowance.wait_for(70, kStart) == std::chrono::seconds(1));
}

TEST_CASE("rate allowance: without a limit it neither fills nor loses what is there") {
  RateAllowance allowance = full(600);
  allowance.charge(700, kStart);
  allowance.set_limit(0, kStart);
  const TimePoint later = kStart + std::chrono::hours(1);
  allowance.set_limit(600, later);
  CHECK(allowance.wait_for(0, later) == std::chrono::seconds(10));
}

TEST_CASE("rate allowance: a clock that does not run and one that goes back fill nothing") {
  RateAllowance allowance(kStart);
  allowance.set_limit(600, kStart);
  for (const std::int64_t ns : {1'000, 0, 1'000})
    CHECK(allowance.wait_for(1, TimePoint{ns}) == std::chrono::milliseconds(100));
}

TEST_CASE("rate allowance: over random changes it is what plain arithmetic says") {
  const std::uint64_t seed = testing::test_seed();
  CAPTURE(seed);
  SeededRandom random(seed);
  RateAllowance allowance(kStart);
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

TEST_CASE("rate allowances: a request takes what it asks for, and gives back what it did not use") {
  RateAllowances allowances;
  allowances.set_quota(limited(600, 600), kStart);
  CHECK(allowances.take({"t"}, {}, all_of(400), kStart));
  CHECK(allowances.take({"t"}, {}, all_of(300), kStart).error().retry_after_ms == 10'000);
  allowances.give_back(kTenant, {.unused_tokens = 350});
  CHECK(allowances.take({"t"}, {}, all_of(300), kStart));
  CHECK_FALSE(allowances.take({"t"}, {}, all_of(251), kStart));
  CHECK(allowances.take({"t"}, {}, all_of(250), kStart));
}

TEST_CASE("rate allowances: requests that come at once use no more than a minute's tokens") {
  RateAllowances allowances;
  allowances.set_quota(limited(100, 100), kStart);
  int accepted = 0;
  for (int i = 0; i < 8; ++i) accepted += allowances.take({"t"}, {}, all_of(100), kStart) ? 1 : 0;
  CHECK(accepted == 1);
  CHECK(allowances.take({"t"}, {}, all_of(100), kStart).error().retry_after_ms == 60'000);
}

TEST_CASE("rate allowances: a refusal says in ms when this request is accepted") {
  RateAllowances allowances;
  allowances.set_quota(limited(600, 10), kStart);
  const auto refused = allowances.take({"t"}, {}, all_of(13), kStart);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::QuotaTokens);
  CHECK(refused.error().retry_after_ms == 300);
  CHECK(refused.error().detail.find("--tokens-per-minute") != std::string::npos);
  CHECK(allowances.take({"t"}, {}, all_of(12), kStart).error().retry_after_ms == 200);
  CHECK_FALSE(allowances.take({"t"}, {}, all_of(13), kStart + std::chrono::milliseconds(299)));
  CHECK(allowances.take({"t"}, {}, all_of(13), kStart + std::chrono::milliseconds(300)));
}

TEST_CASE("rate allowances: a request of more than a minute's tokens is refused for good") {
  RateAllowances allowances;
  allowances.set_quota(limited(60, 60), kStart);
  const auto refused = allowances.take({"t"}, {}, all_of(61), kStart);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::BadRequest);
  CHECK(refused.error().retry_after_ms == 0);
  CHECK(refused.error().detail.contains("60 per minute"));
  CHECK(allowances.take({"t"}, {}, all_of(60), kStart));
}

TEST_CASE("rate allowances: a request beyond this worker's part needs a full allowance, and pays") {
  RateAllowances allowances;
  wire::TenantQuota part = limited(60, 59);
  part.rates.request_tokens = 100;
  allowances.set_quota(part, kStart);
  CHECK(allowances.most_per_request({"t"}, {}) == 100u);
  CHECK(allowances.take({"t"}, {}, all_of(101), kStart).error().code == Errc::BadRequest);
  CHECK(allowances.take({"t"}, {}, all_of(100), kStart).error().retry_after_ms == 1'000);
  const TimePoint full = kStart + std::chrono::seconds(1);
  CHECK(allowances.take({"t"}, {}, all_of(100), full));
  CHECK(allowances.take({"t"}, {}, all_of(1), full).error().retry_after_ms == 41'000);
}

TEST_CASE("rate allowances: a request without a limit of its own needs its prompt and one token") {
  RateAllowances allowances;
  allowances.set_quota(limited(60, 9), kStart);
  const RateDemand open{.tokens = 60, .needed = 10};
  CHECK(allowances.take({"t"}, {}, open, kStart).error().retry_after_ms == 1'000);
  const TimePoint there = kStart + std::chrono::seconds(1);
  CHECK(allowances.take({"t"}, {}, open, there));
  CHECK(allowances.take({"t"}, {}, open, there).error().retry_after_ms == 60'000);  // not 2 minutes
  allowances.give_back(kTenant, {.unused_tokens = 50});
  CHECK(allowances.take({"t"}, {}, open, there).error().retry_after_ms == 10'000);
}

TEST_CASE(
    "rate allowances: a tenant is not refused without a limit, or after its limit is lifted") {
  RateAllowances allowances;
  CHECK(allowances.take({"t"}, {}, all_of(500), kStart));
  CHECK_FALSE(allowances.most_per_request({"t"}, {}));
  allowances.give_back(kTenant, {.unused_tokens = 500});
  allowances.set_quota(limited(1), kStart);
  CHECK_FALSE(allowances.take({"t"}, {}, all_of(1), kStart));
  CHECK(allowances.take({"other"}, {}, all_of(1), kStart));
  allowances.set_quota({.tenant = {"t"}, .max_concurrent = 1}, kStart);
  CHECK_FALSE(allowances.most_per_request({"t"}, {}));
  CHECK(allowances.take({"t"}, {}, all_of(500), kStart));
}

TEST_CASE("rate allowances: a tenant whose leases end keeps its balance and gains no time") {
  RateAllowances allowances;
  allowances.set_quota(limited(60, 60), kStart);
  REQUIRE(allowances.take({"t"}, {}, all_of(60), kStart));
  allowances.set_quota({.tenant = {"t"}}, kStart);
  allowances.give_back(kTenant, {.unused_tokens = 20});  // its last request ended with the lease
  const TimePoint later = kStart + std::chrono::hours(1);
  allowances.set_quota(limited(60, 10), later);  // what the broker says that it gained
  CHECK(allowances.take({"t"}, {}, all_of(31), later).error().retry_after_ms == 1'000);
  CHECK(allowances.take({"t"}, {}, all_of(30), later));
}

const ApiKeyId kKey{"0011"};

/// A quota of tenant t, which is not limited, with limits of its key.
wire::TenantQuota with_key(const wire::KeyQuota& key) {
  return {.tenant = {"t"}, .max_concurrent = 1, .keys = {key}};
}

TEST_CASE("rate allowances: requests per minute are counted for each owner, rebinds are not") {
  RateAllowances allowances;
  wire::TenantQuota quota =
      with_key({.key = kKey, .rates = {.requests_per_minute = 6, .request_credit = 1}});
  quota.rates = {.requests_per_minute = 60, .request_credit = 2};
  allowances.set_quota(quota, kStart);
  const RateDemand request{.tokens = 5, .needed = 5};
  CHECK(allowances.take({"t"}, kKey, request, kStart).value().size() == 2);
  const Error refused = allowances.take({"t"}, kKey, request, kStart).error();
  CHECK(refused.code == Errc::QuotaRequests);
  CHECK(refused.retry_after_ms == 10'000);
  CHECK(refused.detail.contains("API key 0011 of tenant t may start 6 requests"));
  CHECK(allowances.take({"t"}, {}, request, kStart));  // without the key
  CHECK(allowances.take({"t"}, {}, request, kStart).error().retry_after_ms == 1'000);
  CHECK(allowances.take({"t"}, kKey, {.tokens = 5, .needed = 5, .is_new_request = false}, kStart));
}

TEST_CASE("rate allowances: a refusal by the key takes nothing from the tenant") {
  RateAllowances allowances;
  wire::TenantQuota quota =
      with_key({.key = kKey, .rates = {.tokens_per_minute = 60, .token_credit = 10}});
  quota.rates = {.tokens_per_minute = 600, .token_credit = 20};
  allowances.set_quota(quota, kStart);
  CHECK(allowances.most_per_request({"t"}, kKey) == 60u);
  CHECK(allowances.most_per_request({"t"}, {}) == 600u);
  const Error refused = allowances.take({"t"}, kKey, all_of(11), kStart).error();
  CHECK(refused.code == Errc::QuotaTokens);
  CHECK(refused.detail.contains("brokerctl keys update --tokens-per-minute"));
  CHECK(allowances.take({"t"}, kKey, all_of(61), kStart).error().code == Errc::BadRequest);
  CHECK(allowances.take({"t"}, {}, all_of(20), kStart));
}

TEST_CASE("rate allowances: a key has at most its number of requests at once") {
  RateAllowances allowances;
  allowances.set_quota(with_key({.key = kKey, .max_concurrent = 2}), kStart);
  const auto owners = allowances.take({"t"}, kKey, all_of(1), kStart).value();
  CHECK(owners == std::vector<RateOwner>{{{"t"}, kKey}});
  CHECK(allowances.take({"t"}, kKey, all_of(1), kStart));
  const Error refused = allowances.take({"t"}, kKey, all_of(1), kStart).error();
  CHECK(refused.code == Errc::QuotaConcurrent);
  CHECK(refused.detail.contains("has 2 requests on this worker, of at most 2"));
  CHECK(allowances.take({"t"}, {"other"}, all_of(1), kStart).value().empty());
  allowances.give_back(owners.front(), {.ended = 1});
  CHECK(allowances.take({"t"}, kKey, all_of(1), kStart));
  allowances.set_quota({.tenant = {"t"}, .max_concurrent = 1}, kStart);
  CHECK(allowances.take({"t"}, kKey, all_of(1), kStart));
}

TEST_CASE("rate allowances: rebinds beyond their allowance count as requests") {
  for (const std::uint32_t limit : {2u, 100u}) {
    RateAllowances allowances;
    wire::TenantQuota quota{.tenant = {"t"}, .max_concurrent = 1};
    quota.rates = {.requests_per_minute = limit, .request_credit = limit};
    allowances.set_quota(quota, kStart);
    const RateDemand rebind{.tokens = 1, .needed = 1, .is_new_request = false};
    const auto take = [&](const RateDemand& demand) {
      return allowances.take({"t"}, {}, demand, kStart).has_value();
    };
    const std::uint32_t free_rebinds = std::max(limit, 60u);
    for (std::uint32_t i = 0; i < free_rebinds; ++i) REQUIRE(take(rebind));
    for (std::uint32_t i = 0; i < limit; ++i) REQUIRE(take(i % 2 == 0 ? rebind : all_of(1)));
    CHECK_FALSE(take(all_of(1)));
    const Error refused = allowances.take({"t"}, {}, rebind, kStart).error();
    CHECK(refused.code == Errc::QuotaRequests);
    CHECK(refused.retry_after_ms > 0);
    // Another quota, as each change of another tenant sends, fills nothing.
    quota.rates.request_credit = 0;
    allowances.set_quota(quota, kStart);
    CHECK_FALSE(take(rebind));
  }
}

TEST_CASE("rate allowances: a request that no day can hold is not asked to wait") {
  RateAllowances allowances;
  wire::TenantQuota quota{.tenant = {"t"}, .max_concurrent = 1};
  quota.rates = {.tokens_today = 50, .request_day_tokens = 100};
  allowances.set_quota(quota, kStart);
  const Error never = allowances.take({"t"}, {}, all_of(101), kStart).error();
  CHECK(never.code == Errc::BadRequest);
  CHECK(never.retry_after_ms == 0);
  CHECK(never.detail.contains("101 tokens, and tenant t may use 100 per day"));
  CHECK(never.detail.contains("--tokens-per-day"));
  CHECK(allowances.take({"t"}, {}, all_of(100), kStart).error().code == Errc::QuotaTokens);
  CHECK(allowances.take({"t"}, {}, {.tokens = 101, .needed = 50}, kStart));
}

TEST_CASE("rate allowances: running requests are held against the tokens that the day has left") {
  RateAllowances allowances;
  const TimePoint midnight = kStart + std::chrono::hours(3);
  const auto left = [&](std::uint64_t tokens) {
    wire::TenantQuota quota{.tenant = {"t"}, .max_concurrent = 1};
    quota.rates = {.tokens_today = tokens, .day_end_boottime_ns = midnight.boottime_ns};
    allowances.set_quota(quota, kStart);
  };
  left(100);
  CHECK(allowances.take({"t"}, {}, all_of(60), kStart));
  const Error refused = allowances.take({"t"}, {}, all_of(41), kStart).error();
  CHECK(refused.code == Errc::QuotaTokens);
  CHECK(refused.retry_after_ms == 1'000);  // the running request may end with less
  CHECK(refused.detail.contains("has 100 tokens left today"));
  CHECK(refused.detail.contains("use 60 of them"));
  CHECK(allowances.take({"t"}, {}, all_of(101), kStart).error().retry_after_ms == 3 * 3'600'000);
  CHECK(allowances.take({"t"}, {}, {.tokens = 500, .needed = 40}, kStart));
  allowances.give_back(kTenant, {.held_tokens = 40, .ended = 1});
  allowances.give_back(kTenant, {.held_tokens = 60, .ended = 1});
  left(0);
  CHECK(allowances.take({"t"}, {}, all_of(1), kStart).error().code == Errc::QuotaTokens);
  CHECK(allowances.take({"t"}, {}, all_of(1), midnight).error().retry_after_ms == 1'000);
  left(1);
  CHECK(allowances.take({"t"}, {}, all_of(1), kStart));
}

// Requests take and give back at random; what they used never exceeds what the limit allowed.
TEST_CASE("rate allowances: over any time no more is used than one minute's tokens and the rate") {
  const std::uint64_t seed = testing::test_seed();
  CAPTURE(seed);
  SeededRandom random(seed);
  constexpr std::uint32_t kLimit = 600;
  RateAllowances allowances;
  allowances.set_quota(limited(kLimit, kLimit), kStart);
  TimePoint now = kStart;
  std::vector<std::uint64_t> running;
  std::uint64_t used = 0;
  for (int step = 0; step < 20'000; ++step) {
    now = now + std::chrono::milliseconds(random.below(2'000));
    const auto asked = static_cast<std::uint64_t>(1 + random.below(kLimit));
    if (random.below(2) == 0) {
      if (allowances.take({"t"}, {}, all_of(asked), now)) running.push_back(asked);
    } else if (!running.empty()) {
      const auto unused = static_cast<std::uint64_t>(random.below(running.back() + 1));
      used += running.back() - unused;
      running.pop_back();
      allowances.give_back(kTenant, {.unused_tokens = unused});
    }
    const auto passed_ms = static_cast<std::uint64_t>((now - kStart).count() / 1'000'000);
    REQUIRE(used <= kLimit + passed_ms * kLimit / 60'000 + 1);
  }
  CHECK(used > kLimit);
}

}  // namespace leasehold
