// A tenant's quota, which an operator may change while its requests run.
#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

wire::TenantQuota quota(std::uint32_t max_concurrent, std::uint32_t max_blocks = 100) {
  return {.tenant = {"t1"},
          .revision = 7,
          .max_concurrent = max_concurrent,
          .max_blocks = max_blocks,
          .divided = true};
}

void submit_all(SchedulerFixture& fixture, LeaseId lease,
                std::initializer_list<std::uint32_t> tokens) {
  int number = 0;
  for (const std::uint32_t count : tokens) {
    fixture.submit(lease, "r" + std::to_string(++number), 4, count);
  }
}

}  // namespace

TEST_CASE("quota: a lowered max_concurrent admits nothing until fewer run, and ends nothing") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 40, 3);
  submit_all(fixture, lease, {3, 5, 9, 2});
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 3);

  fixture.scheduler.set_quota(quota(1));
  std::vector<std::uint32_t> running;
  for (int tick = 0; tick < 12; ++tick) {
    for (const Completed& end : only<Completed>(fixture.tick())) {
      REQUIRE(end.reason == CompletionReason::MaxTokensReached);
    }
    running.push_back(fixture.scheduler.running().size());
  }
  // r1, r2 and r3 end after their third, fifth and ninth token; only then does r4 run.
  REQUIRE(running == std::vector<std::uint32_t>{3, 2, 2, 1, 1, 1, 1, 0, 1, 0, 0, 0});
}

TEST_CASE("quota: it counts the requests and blocks of all leases of the tenant") {
  SchedulerFixture fixture;
  const LeaseId one = fixture.lease(1, 20, 8);
  const LeaseId other{9, 1};
  fixture.add_lease(other, {"t1"}, 20);
  PromptRequest second = fixture.request(one, "second", 4, 50);
  second.lease = other;
  fixture.submit(one, "first", 4, 50);
  fixture.submit(second);

  fixture.scheduler.set_quota(quota(1));
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 1);

  fixture.scheduler.set_quota(quota(2, 3));  // each holds 2 blocks: one of text, one record
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 1);

  fixture.scheduler.set_quota(quota(2));
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 2);
}

TEST_CASE("quota: a request that runs grows past a lowered max_blocks, and none is admitted") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "running", 4, 60);
  fixture.tick();
  fixture.scheduler.set_quota(quota(8, 2));
  fixture.submit(lease, "small", 4, 3);

  std::vector<Completed> ends;
  for (int tick = 0; tick < 59; ++tick) {
    REQUIRE(fixture.scheduler.running().size() == 1);
    for (const Completed& end : only<Completed>(fixture.tick())) ends.push_back(end);
  }
  REQUIRE(ends.size() == 1);
  REQUIRE(ends[0].reason == CompletionReason::MaxTokensReached);
  REQUIRE(ends[0].emitted_tokens == 60);
  fixture.tick();
  REQUIRE(fixture.scheduler.running().size() == 1);  // "small"
}

TEST_CASE("quota: a waiting request that a lowered max_blocks can never hold is rejected") {
  SchedulerFixture fixture({.max_batch_size = 1});
  const LeaseId lease = fixture.lease(1, 20);
  const LeaseId other = fixture.lease(2, 20);
  fixture.submit(other, "other", 4, 2);
  fixture.tick();
  fixture.submit(lease, "large", 4, 60);
  fixture.scheduler.set_quota(quota(8, 2));

  fixture.tick();
  const auto rejected = single<AdmissionRejected>(fixture.tick());
  REQUIRE(rejected.engine_request_id.value == "large");
  REQUIRE(rejected.reason.code == Errc::QuotaBlocks);
  REQUIRE_FALSE(fixture.scheduler.has_work());
}

TEST_CASE("quota: while its share here is nothing, a waiting request is not rejected") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  submit_all(fixture, lease, {3});
  fixture.scheduler.set_quota(quota(0, 0));
  REQUIRE(fixture.tick().empty());
  REQUIRE(fixture.tenancies().waiting_count() == 1);
  fixture.scheduler.set_quota(quota(1));
  REQUIRE(only<Token>(fixture.tick()).size() == 1);
}

TEST_CASE("quota: a default token limit is lowered to what the tenant may hold beside the prompt") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  fixture.scheduler.set_quota(quota(8, 4));  // 3 blocks of text beside the record
  PromptRequest request = fixture.request(lease, "chat", 20, 256);
  request.may_shorten = true;
  constexpr std::uint64_t kAny = 1'000'000;
  fixture.scheduler.fit().shorten(request, kAny);
  CHECK(request.max_emitted_tokens == 28);
  CHECK(fixture.scheduler.check(request));
  SECTION("but not below min_tokens, so that a text that cannot be as long is refused") {
    request.max_emitted_tokens = 256;
    request.sampling.min_tokens = 29;
    fixture.scheduler.fit().shorten(request, kAny);
    CHECK(request.max_emitted_tokens == 29);
    const auto refused = fixture.scheduler.check(request);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::QuotaBlocks);
  }
  SECTION("and to what the context holds") {
    fixture.scheduler.set_quota(quota(8, 100));
    request.max_emitted_tokens = 1'000;
    fixture.scheduler.fit().shorten(request, kAny);
    CHECK(request.max_emitted_tokens == 236);
  }
  SECTION("not below one token, which may fit or not") {
    request.prompt.resize(47, 1);
    fixture.scheduler.fit().shorten(request, kAny);
    CHECK(request.max_emitted_tokens == 1);
    CHECK(fixture.scheduler.check(request));
    request.prompt.resize(48, 1);
    fixture.scheduler.fit().shorten(request, kAny);
    CHECK(fixture.scheduler.check(request).error().code == Errc::QuotaBlocks);
  }
  SECTION("not below what was emitted before a rebind") {
    request.prompt.resize(40, 1);
    request.emitted.resize(20, 2);
    request.max_emitted_tokens = 256;
    fixture.scheduler.fit().shorten(request, kAny);
    CHECK(request.max_emitted_tokens == 20);
  }
  SECTION("not to a part of the quota once the text has begun") {
    wire::TenantQuota part = quota(8, 4);
    part.request_blocks = 8;
    fixture.scheduler.set_quota(part);
    request.emitted.resize(40, 2);
    request.max_emitted_tokens = 92;
    fixture.scheduler.fit().shorten(request, kAny);
    CHECK(request.max_emitted_tokens == 92);
    CHECK(fixture.scheduler.check(request).error().retry_after_ms > 0);
  }
  SECTION("and one that was asked for is not lowered") {
    request.may_shorten = false;
    request.max_emitted_tokens = 256;
    fixture.scheduler.fit().shorten(request, kAny);
    CHECK(request.max_emitted_tokens == 256);
  }
}

TEST_CASE("quota: what can never be held is refused for good, what other leases hold for a while") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  wire::TenantQuota part = quota(8, 4);
  part.request_blocks = 8;
  fixture.scheduler.set_quota(part);
  const Error later = fixture.scheduler.check(fixture.request(lease, "r", 4, 60)).error();
  CHECK(later.code == Errc::QuotaBlocks);
  CHECK(later.retry_after_ms > 0);
  const Error never = fixture.scheduler.check(fixture.request(lease, "r", 4, 110)).error();
  CHECK(never.code == Errc::QuotaBlocks);
  CHECK(never.retry_after_ms == 0);
  part.max_blocks = 100;  // the memory that may be lent is smaller than the quota
  fixture.scheduler.set_quota(part);
  CHECK(fixture.scheduler.check(fixture.request(lease, "r", 4, 60)));
  CHECK(fixture.scheduler.check(fixture.request(lease, "r", 4, 110)).error().retry_after_ms == 0);
}

TEST_CASE("quota: a request that waits behind blocks of the tenant's other leases may retry") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 1);
  fixture.submit(lease, "r", 4, 3);
  fixture.tick();
  fixture.tenancies().deny_growth({.lease = lease, .blocks = 1}, Errc::QuotaBlocks);
  const auto rejected = single<AdmissionRejected>(fixture.tick());
  CHECK(rejected.reason.code == Errc::QuotaBlocks);
  CHECK(rejected.reason.retry_after_ms > 0);
}

TEST_CASE("quota: the use of a divided quota is reported once for each change") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  REQUIRE(fixture.tenancies().take_usage().empty());  // the quota is not divided
  fixture.scheduler.set_quota(quota(1));
  submit_all(fixture, lease, {2, 9});
  fixture.tick();

  const auto usage = fixture.tenancies().take_usage();
  REQUIRE(usage.size() == 1);
  REQUIRE(usage[0].tenant == TenantId{"t1"});
  REQUIRE(usage[0].revision == 7);
  REQUIRE(usage[0].running == 1);
  REQUIRE(usage[0].waiting == 1);
  REQUIRE(usage[0].admitted == 1);
  REQUIRE(fixture.tenancies().take_usage().empty());

  fixture.tick();  // ends the first
  REQUIRE(fixture.tenancies().take_usage().at(0).running == 0);
  fixture.scheduler.set_quota(quota(0));
  fixture.tick();
  REQUIRE(fixture.tenancies().take_usage().empty());
  auto later = quota(0);
  later.revision = 8;
  fixture.scheduler.set_quota(later);
  REQUIRE(fixture.tenancies().take_usage().at(0).revision == 8);
}

TEST_CASE("quota: a tenant is forgotten once its quota is withdrawn and its last lease ends") {
  SchedulerFixture fixture;
  const Completed end{.reason = CompletionReason::Revoked};
  for (std::uint32_t slot = 0; slot < 1000; ++slot) {
    const LeaseId lease = fixture.lease(slot, 2);
    fixture.submit(lease, "r" + std::to_string(slot));
    fixture.tick();
    const wire::TenantQuota withdrawn{.tenant = {"t" + std::to_string(slot)}, .revision = 9};
    if (slot % 2 == 0) fixture.scheduler.set_quota(withdrawn);
    CHECK(fixture.tenancies().tenant_count() == 1);
    fixture.scheduler.end_lease(lease, end);
    if (slot % 2 == 1) fixture.scheduler.set_quota(withdrawn);
    CHECK(fixture.tenancies().tenant_count() == 0);
    fixture.tenancies().take_usage();
  }
}

TEST_CASE("quota: one that came for the next lease outlives the end of the last one") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  fixture.scheduler.set_quota({.tenant = {"t1"}, .revision = 8});
  fixture.scheduler.set_quota(quota(2));
  fixture.revoke(lease);
  const LeaseId next{1, 2};
  fixture.add_lease(next, {"t1"}, 20);
  fixture.submit(next, "r");
  fixture.tick();
  CHECK(fixture.scheduler.running().size() == 1);
}

TEST_CASE("quota: only tenants whose use changed are looked at for the next report") {
  SchedulerFixture fixture;
  std::vector<LeaseId> leases;
  for (std::uint32_t slot = 1; slot <= 100; ++slot) {
    leases.push_back(fixture.lease(slot, 20));
    wire::TenantQuota divided = quota(4);
    divided.tenant = {"t" + std::to_string(slot)};
    fixture.scheduler.set_quota(divided);
  }
  CHECK(fixture.tenancies().take_usage().size() == 100);
  CHECK(fixture.tenancies().changed_tenants().empty());

  fixture.submit(leases[6], "r", 4, 3);
  fixture.tick();
  CHECK(fixture.tenancies().changed_tenants() == std::set{TenantId{"t7"}});
  CHECK(fixture.tenancies().take_usage().at(0).running == 1);
  fixture.tick();  // another token of the same request
  CHECK(fixture.tenancies().changed_tenants().empty());
  fixture.tick();
  CHECK(fixture.tenancies().take_usage().at(0).running == 0);
}

}  // namespace leasehold::testing
