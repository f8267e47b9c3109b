// Leases and tenants of a worker, without a scheduler.
#include "worker/schedule/tenants/tenancies.hpp"

#include <catch2/catch.hpp>
#include <span>

namespace leasehold::testing {
namespace {

const TenantId kTenant{"t"};
constexpr LeaseId kFirst{1, 1};
constexpr LeaseId kSecond{2, 1};

/// One tenant with a divided quota and two leases.
Tenancies two_leases() {
  Tenancies tenancies(16);
  tenancies.set_quota(
      {.tenant = kTenant, .revision = 3, .max_concurrent = 8, .max_blocks = 100, .divided = true});
  tenancies.add({.lease = kFirst, .tenant = kTenant});
  tenancies.add({.lease = kSecond, .tenant = kTenant});
  return tenancies;
}

}  // namespace

TEST_CASE("tenancies: blocks and requests of all leases count for their tenant") {
  Tenancies tenancies = two_leases();
  tenancies.at(kFirst).pool.add_extent(ExtentId{1}, 4);
  tenancies.at(kSecond).pool.add_extent(ExtentId{2}, 4);
  REQUIRE(tenancies.at(kFirst).pool.take());
  REQUIRE(tenancies.at(kSecond).pool.take());
  REQUIRE(tenancies.at(kSecond).pool.take());
  tenancies.at(kFirst).running = 2;
  tenancies.at(kSecond).running = 1;
  tenancies.at(kSecond).waiting.push_back({.tenant = kTenant, .prompt = {1, 2, 3}});
  tenancies.note_busy(tenancies.at(kSecond));
  CHECK(tenancies.held_by(kTenant) == 3);
  CHECK(tenancies.used_by(kTenant) == 3);
  CHECK(tenancies.running_of(*tenancies.at(kFirst).account) == 3);
  CHECK(tenancies.waiting_of(kTenant) == 1);
  CHECK(tenancies.waiting_count() == 1);
}

TEST_CASE("tenancies: a tenant that is not known has no leases, no blocks and no limit") {
  const Tenancies tenancies = two_leases();
  const TenantId other{"other"};
  CHECK(tenancies.leases_of(other).empty());
  CHECK(tenancies.held_by(other) == 0);
  CHECK(tenancies.waiting_of(other) == 0);
  CHECK(tenancies.limit_of({.tenant = other}) == 0);
}

TEST_CASE("tenancies: a lowered quota leaves an admitted request its own limit") {
  Tenancies tenancies = two_leases();
  tenancies.set_quota({.tenant = kTenant, .max_concurrent = 8, .max_blocks = 10});
  CHECK(tenancies.limit_of({.tenant = kTenant}) == 10);
  CHECK(tenancies.limit_of({.tenant = kTenant, .block_limit = 100}) == 100);
}

TEST_CASE("tenancies: a request can ever hold what the broker says, or else the quota here") {
  Tenancies tenancies = two_leases();
  tenancies.set_quota({.tenant = kTenant, .max_concurrent = 8, .max_blocks = 10});
  CHECK(tenancies.most_blocks_of(kTenant) == 10);
  tenancies.set_quota(
      {.tenant = kTenant, .max_concurrent = 8, .max_blocks = 10, .request_blocks = 30});
  CHECK(tenancies.most_blocks_of(kTenant) == 30);
  CHECK(tenancies.most_blocks_of({"other"}) == 0);
}

TEST_CASE("tenancies: a tenant is forgotten with its last lease once its quota is withdrawn") {
  Tenancies tenancies = two_leases();
  tenancies.set_quota({.tenant = kTenant});
  tenancies.erase(kFirst);
  CHECK(tenancies.tenant_count() == 1);
  tenancies.erase(kSecond);
  CHECK(tenancies.tenant_count() == 0);
}

TEST_CASE("tenancies: a quota that is not withdrawn is kept without a lease") {
  Tenancies tenancies = two_leases();
  tenancies.erase(kFirst);
  tenancies.erase(kSecond);
  CHECK(tenancies.tenant_count() == 1);
}

TEST_CASE("tenancies: use is reported once for each change") {
  Tenancies tenancies = two_leases();
  REQUIRE(tenancies.take_usage().size() == 1);  // of the new quota
  CHECK(tenancies.take_usage().empty());
  tenancies.at(kFirst).running = 1;
  tenancies.note_change(kTenant);
  const auto usage = tenancies.take_usage();
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].running == 1);
  CHECK(usage[0].revision == 3);
  tenancies.note_change(kTenant);
  CHECK(tenancies.take_usage().empty());
}

TEST_CASE("tenancies: what a lease was served is reported after its end") {
  Tenancies tenancies = two_leases();
  tenancies.at(kFirst).served_tokens = 7;
  tenancies.at(kSecond).served_tokens = 5;
  tenancies.note_preemption(tenancies.at(kFirst));
  tenancies.erase(kFirst);
  const auto served = tenancies.take_served();
  REQUIRE(served.size() == 1);
  CHECK(served[0].tokens == 12);
  CHECK(served[0].preemptions == 1);
  CHECK(tenancies.take_served().empty());
}

TEST_CASE("tenancies: only tenants with requests have a counter, and wait for a turn") {
  Tenancies tenancies = two_leases();
  tenancies.note_change(kTenant);
  tenancies.settle_active();
  CHECK(tenancies.at(kFirst).account->counter == nullptr);
  CHECK(tenancies.waiting_accounts().empty());
  tenancies.at(kSecond).waiting.push_back({.tenant = kTenant});
  tenancies.note_busy(tenancies.at(kSecond));
  tenancies.at(kSecond).account->owed = 9;
  tenancies.note_change(kTenant);
  tenancies.settle_active();
  CHECK(tenancies.at(kFirst).account->counter != nullptr);
  const auto waiting = tenancies.waiting_accounts();
  REQUIRE(waiting.size() == 1);
  CHECK(waiting[0] == tenancies.at(kFirst).account);
  CHECK(waiting[0]->owed == 0);
}

TEST_CASE(
    "tenancies: a lease is busy while it has requests, wants memory or has records to clear") {
  Tenancies tenancies = two_leases();
  Tenancy& lease = tenancies.at(kFirst);
  const auto is_busy = [&tenancies] {
    tenancies.settle_active();
    return tenancies.busy().contains(kFirst);
  };
  CHECK_FALSE(is_busy());
  lease.running = 1;
  tenancies.note_busy(lease);
  CHECK(is_busy());
  lease.running = 0;
  CHECK_FALSE(is_busy());

  lease.growth.want_for_waiting(2);
  tenancies.note_busy(lease);
  CHECK(is_busy());
  CHECK(tenancies.take_growth_requests().size() == 1);
  CHECK_FALSE(is_busy());
  tenancies.deny_growth({.lease = kFirst, .blocks = 2});
  CHECK(is_busy());
  lease.growth.forget_denial();
  CHECK_FALSE(is_busy());

  lease.pool.add_extent(ExtentId{1}, 1);
  const BlockId block = *lease.pool.take();
  lease.pool.release_record(std::span(&block, 1));
  tenancies.note_busy(lease);
  CHECK(is_busy());
  CHECK(lease.pool.take_released_records().size() == 1);
  CHECK_FALSE(is_busy());
}

TEST_CASE("tenancies: an ended lease is not busy") {
  Tenancies tenancies = two_leases();
  tenancies.note_busy(tenancies.at(kFirst));
  tenancies.erase(kFirst);
  CHECK(tenancies.busy().empty());
}

}  // namespace leasehold::testing
