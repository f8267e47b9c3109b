// Sequences that read an adapter: whose blocks they use, when they end, what they are charged.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/support/block_conservation.hpp"
#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr LeaseId kAdapterLease{40, 1};

AdapterUse adapter(LeaseId lease = kAdapterLease, std::uint8_t digest = 1) {
  return std::make_shared<const LoadedAdapter>(
      LoadedAdapter{.name = "tuned", .version = 1, .digest = {{digest}}, .lease = lease});
}

std::vector<TokenId> numbered(std::uint32_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

PromptRequest numbered_request(const SchedulerFixture& fixture, LeaseId lease,
                               const std::string& name, AdapterUse use) {
  PromptRequest request = fixture.request(lease, name);
  request.prompt = numbered(40);
  request.adapter.use = std::move(use);
  return request;
}

/// Runs the request alone to its end, and returns the rows of its prompt that were computed.
std::uint32_t prompt_rows(SchedulerFixture& fixture, PromptRequest request) {
  fixture.submit(std::move(request));
  (void)fixture.tick();
  const std::uint32_t rows = fixture.row_count();
  while (fixture.scheduler.has_work()) (void)fixture.tick();
  check_block_conservation(fixture.scheduler);
  return rows;
}

}  // namespace

TEST_CASE("adapters: a cached prompt is used again with the same content of an adapter only") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 90);
  const auto rows = [&](const std::string& name, AdapterUse use) {
    return prompt_rows(fixture, numbered_request(fixture, lease, name, std::move(use)));
  };
  CHECK(rows("base", nullptr) == 40);
  CHECK(rows("adapter", adapter()) == 40);
  CHECK(rows("other content", adapter(kAdapterLease, 2)) == 40);
  CHECK(rows("base again", nullptr) == 8);
  CHECK(rows("loaded again", adapter({41, 1})) == 8);
}

TEST_CASE("adapters: a published text is lent under the content that computed it, and no other") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 90);
  const auto rows = [&](const std::string& name, AdapterUse use) {
    return prompt_rows(fixture, numbered_request(fixture, lease, name, std::move(use)));
  };
  AdapterUse publisher;
  std::vector<std::uint32_t> expected;  // of the base model, the adapter, and one of other content
  SECTION("the base model's") {
    expected = {8, 40, 40};
  }
  SECTION("an adapter's") {
    publisher = adapter();
    expected = {40, 8, 40};
  }
  const LeaseId shared{9, 1};
  fixture.tenancies().add({.lease = shared, .tenant = public_owner(), .is_shared = true});
  fixture.grow(shared, 4);
  PromptRequest fill = fixture.scheduler.fill_request(shared, numbered(32)).value();
  fill.adapter.use = publisher;
  REQUIRE(fixture.scheduler.submit(std::move(fill)));
  if (publisher) CHECK(publisher.use_count() > 1);
  while (fixture.scheduler.has_work()) (void)fixture.tick();
  if (publisher) CHECK(publisher.use_count() == 1);
  CHECK(rows("base", nullptr) == expected[0]);
  CHECK(rows("adapter", adapter({41, 1})) == expected[1]);
  CHECK(rows("other content", adapter({42, 1}, 2)) == expected[2]);
}

TEST_CASE("adapters: the end of an adapter's lease ends its running and waiting requests alone") {
  SchedulerFixture fixture({.max_batch_size = 2});
  const LeaseId lease = fixture.lease(1, 90);
  fixture.submit(numbered_request(fixture, lease, "running", adapter()));
  fixture.submit(lease, "base");
  (void)fixture.tick();
  fixture.submit(numbered_request(fixture, lease, "waiting", adapter()));
  fixture.submit(numbered_request(fixture, lease, "other", adapter({41, 1}, 2)));
  CHECK(fixture.scheduler.has_users(kAdapterLease));
  fixture.revoke(kAdapterLease);
  const auto ends = only<Completed>(fixture.scheduler.take_events());
  REQUIRE(ends.size() == 2);
  for (const Completed& end : ends) {
    CHECK(end.reason == CompletionReason::Revoked);
    REQUIRE(end.revocation);
    CHECK(end.revocation->lease == kAdapterLease);
    CHECK(end.revocation->scope == FailureScope::Adapter);
  }
  CHECK_FALSE(fixture.scheduler.has_users(kAdapterLease));
  CHECK(fixture.running().size() == 1);
  std::size_t completed = 0;
  while (fixture.scheduler.has_work()) completed += only<Completed>(fixture.tick()).size();
  CHECK(completed == 2);  // "base" and "other"
  check_block_conservation(fixture.scheduler);
}

TEST_CASE("adapters: a request that ends while it lacks blocks gives its adapter back") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 2);
  const AdapterUse use = adapter();
  PromptRequest request = numbered_request(fixture, lease, "r", use);
  SECTION("cancelled") {
    fixture.submit(std::move(request));
    (void)fixture.tick();
    REQUIRE(fixture.scheduler.cancel({"r"}));
  }
  SECTION("rejected") {
    fixture.submit(std::move(request));
    (void)fixture.tick();
    fixture.deny_growth_requests();
    CHECK(only<AdmissionRejected>(fixture.tick()).size() == 1);
  }
  CHECK(use.use_count() <= 2);  // `use` and, until the end of the test, `request`
  CHECK_FALSE(fixture.scheduler.has_users(kAdapterLease));
  request = {};
  CHECK(use.use_count() == 1);
}

TEST_CASE("adapters: a sequence depends on its own lease and on the adapter's") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 90);
  const Sequence sequence(numbered_request(fixture, lease, "r", adapter()), 16);
  const std::vector<SequenceLease> leases = sequence.leases();
  REQUIRE(leases.size() == 2);
  CHECK(leases[0].lease == lease);
  CHECK(leases[1].lease == kAdapterLease);
  CHECK(sequence.scope_of(lease) == FailureScope::Tenant);
  CHECK(sequence.scope_of(kAdapterLease) == FailureScope::Adapter);
  CHECK(sequence.scope_of({50, 1}) == std::nullopt);
}

TEST_CASE("adapters: a tenant pays for a row the bytes of the adapter beside those of the model") {
  const auto paid = [](AdapterUse use, double share) {
    SchedulerFixture fixture;
    const LeaseId lease = fixture.lease(1, 90);
    PromptRequest request = numbered_request(fixture, lease, "r", std::move(use));
    request.adapter.share = share;
    fixture.submit(std::move(request));
    fixture.scheduler.admit(kNow);
    const TenantAccount& account = *fixture.tenancies().at(lease).account;
    const TokenCounters::Count before = *account.counter;
    (void)fixture.tick();
    return *account.counter - before;
  };
  CHECK(paid(nullptr, 0.0) == TokenCounters::cost(40, 1));
  CHECK(paid(adapter(), 0.25) == TokenCounters::cost(50, 1));
}

}  // namespace leasehold::testing
