// What the agent makes of a tenant's requests, and a part in the broker's words.
#include <catch2/catch.hpp>

#include "ipc/control/messages/rates.hpp"
#include "tools/cell/decide/broker_part.hpp"
#include "tools/cell/decide/host_key.hpp"
#include "tools/cell/decide/tenant_demand.hpp"

using namespace leasehold;
using namespace leasehold::cell;

namespace {

constexpr Share kLimits{.concurrent = 20, .blocks = 100, .reserved = 5, .tokens_per_minute = 1000};
const PartOwner kOwner{{"h1"}, {7}};

TimePoint after_ms(std::int64_t ms) {
  return TimePoint() + std::chrono::milliseconds(ms);
}

wire::TenantView shown(const wire::CellAdmit& admission) {
  wire::TenantView view;
  view.policy = admission.policy;
  view.part = wire::CellPart{.incarnation = admission.incarnation, .revision = admission.revision};
  return view;
}

}  // namespace

TEST_CASE("cell demand: it rises at once, and falls ten seconds after the last such load") {
  TenantDemand demand;
  CHECK(demand.share().is_zero());
  demand.seen(3, after_ms(0));
  CHECK(demand.share().concurrent == 4);
  CHECK(kLimits.blocks <= demand.share().blocks);
  demand.seen(40, after_ms(1));
  CHECK(demand.share().concurrent == 64);
  CHECK_FALSE(demand.falls_at());
  demand.seen(0, after_ms(60'000));  // there were 40 until now
  CHECK(demand.share().concurrent == 64);
  CHECK(demand.falls_at() == after_ms(70'000));
  demand.seen(0, after_ms(69'999));
  CHECK(demand.share().concurrent == 64);
  demand.seen(0, after_ms(70'000));
  CHECK(demand.share().is_zero());
  CHECK_FALSE(demand.falls_at());
}

TEST_CASE("cell demand: time in which the host may run nothing is not idle time") {
  TenantDemand demand;
  demand.seen(3, after_ms(0));
  demand.seen(0, after_ms(1));
  demand.hold(after_ms(30'000));
  demand.seen(0, after_ms(39'999));
  CHECK_FALSE(demand.share().is_zero());
  demand.seen(0, after_ms(40'000));
  CHECK(demand.share().is_zero());
}

TEST_CASE("cell part: the broker's words and back are the same limit") {
  const BrokerLimit limit{
      .share = kLimits, .adapters = {.count = 2, .bytes = 1 << 20}, .revision = 3};
  const auto admission = admission_of({"c"}, {"ann"}, kOwner, limit);
  CHECK(admission.policy.cell == CellName{"c"});
  CHECK(admission.incarnation == 7);
  CHECK(limit_in(shown(admission), kOwner.incarnation) == limit);
  // Another membership has nothing, but later limits must have greater revisions.
  CHECK(limit_in(shown(admission), {8}) ==
        BrokerLimit{.share = {}, .adapters = limit.adapters, .revision = 3});
  CHECK(limit_in(wire::TenantView(), {8}) == BrokerLimit());
}

TEST_CASE("cell part: a share that lacks requests, blocks or tokens is sent as nothing") {
  for (auto amount : {&Share::concurrent, &Share::blocks, &Share::tokens_per_minute}) {
    Share share = kLimits;
    share.*amount = 0;
    const auto admission = admission_of({"c"}, {"ann"}, kOwner, {.share = share, .revision = 1});
    CHECK(admission.policy.max_concurrent == 0);
    CHECK(admission.policy.max_blocks == 0);
  }
}

TEST_CASE("cell part: a part that was lowered to zero resumes with what still runs") {
  auto view = shown(admission_of({"c"}, {"ann"}, kOwner, {.share = {}, .revision = 4}));
  view.part->may_run = 2;
  view.blocks_held = 30;
  view.part->confirmed = false;
  CHECK_FALSE(may_run_at_resume(view, kOwner.incarnation));
  view.part->confirmed = true;
  const auto may_run = may_run_at_resume(view, kOwner.incarnation);
  REQUIRE(may_run);
  CHECK(may_run->concurrent == 2);
  CHECK(may_run->blocks == 30);
}

TEST_CASE("cell part: a void part resumes at once with nothing") {
  auto view = shown(admission_of({"c"}, {"ann"}, kOwner, {.share = kLimits, .revision = 4}));
  view.part->may_run = 2;
  view.part->confirmed = false;
  CHECK(may_run_at_resume(view, {8}) == Share());
  view.part->revision = 0;  // a ceiling of this incarnation took the part away
  CHECK(may_run_at_resume(view, kOwner.incarnation) == Share());
}

// The broker takes requests and blocks from a void part, and keeps its rate.
TEST_CASE("cell part: a void part has no limit, not even the rate that its policy still has") {
  auto view = shown(admission_of({"c"}, {"ann"}, kOwner, {.share = kLimits, .revision = 4}));
  view.part->revision = 0;
  view.policy.max_concurrent = view.policy.max_blocks = 0;
  CHECK(limit_in(view, kOwner.incarnation) == BrokerLimit());
}

TEST_CASE("cell keys: a key that the broker refused is not counted among those that it has") {
  CHECK(may_have_key(Errc::TimedOut));
  CHECK(may_have_key(Errc::ConnectionLost));
  CHECK(may_have_key(Errc::BadRequest));
  CHECK_FALSE(may_have_key(Errc::QuotaConcurrent));
  CHECK_FALSE(may_have_key(Errc::DiskFull));
  CHECK_FALSE(may_have_key(Errc::PermissionDenied));
}

TEST_CASE("cell key: hosts divide its limits as the tenant's, and each gets at least 1") {
  const wire::KeyLimits limits{.max_concurrent = 10,
                               .rates = {.tokens_per_minute = 700, .requests_per_minute = 9}};
  const Share half{.concurrent = 10, .blocks = 50, .reserved = 0, .tokens_per_minute = 500};
  const wire::KeyLimits host = limits_on_host(limits, half, kLimits);
  CHECK(host.max_concurrent == 5u);
  CHECK(host.rates.tokens_per_minute == 350u);
  CHECK(host.rates.requests_per_minute == 4u);
  CHECK(limits_on_host(limits, kLimits, kLimits) == limits);
  const Share small{.concurrent = 1, .blocks = 1, .reserved = 0, .tokens_per_minute = 1};
  CHECK(limits_on_host(limits, small, kLimits).max_concurrent == 1u);
  CHECK(limits_on_host(limits, small, kLimits).rates.requests_per_minute == 1u);
  CHECK(limits_on_host({}, half, kLimits) == wire::KeyLimits());
  CHECK(limits_on_host({.max_concurrent = 1u << 30}, kLimits, kLimits).max_concurrent == 64u);
}

TEST_CASE("cell key: an update replaces all that a broker has of the key") {
  const std::string hash(64, 'a');
  const CellKey key{.hash = hash, .tenant = {"ann"}, .name = "ci"};
  const wire::KeyUpdate plain = update_of(key, {});
  CHECK(plain.name == "ci");
  CHECK(plain.never_expires);
  CHECK(plain.removes.size() == 3);
  CellKey expiring = key;
  expiring.expires_unix_ms = 5;
  const wire::KeyUpdate limited = update_of(expiring, {.max_concurrent = 2});
  CHECK(!limited.never_expires);
  CHECK(limited.expires_unix_ms == 5);
  CHECK(limited.limits.max_concurrent == 2u);
  CHECK(limited.removes == std::vector<std::string>{"tokens_per_minute", "requests_per_minute"});
  CHECK(check_expiry(expiring, 4));
  CHECK(check_expiry(expiring, 5).error().code == Errc::BadToken);
}
