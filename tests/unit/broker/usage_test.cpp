// Records of finished requests and of revocations, as the broker decides them.
#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

struct UsageWorld : ServingWorld {
  LeaseId lease = acquired("a");
  UsageWorld() { forget_effects(); }

  wire::UsageRecord usage(std::uint64_t number) const {
    return {.number = number,
            .tenant = {"a"},
            .request = {"r"},
            .lease = lease,
            .generated_tokens = 3,
            .reason = "EndOfSequence"};
  }
  CallId report(std::vector<wire::UsageRecord> records, ConnectionId from = kWorkerSocket) {
    return call(from, wire::UsageReport{.records = std::move(records)});
  }
};

}  // namespace

TEST_CASE("usage records: a report is one transaction, and is answered once it is on disk") {
  UsageWorld world;
  const CallId call = world.report({world.usage(1), world.usage(2)});

  CHECK(world.performed<effect::Journal>().size() == 1);
  const auto rows = world.rows<journal::UsageRow>();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].worker == world.worker);
  CHECK(rows[0].worker_name == "w0");
  CHECK(rows[0].lease_known);
  CHECK(rows[1].usage.number == 2);
  world.answer<wire::Empty>(call);
  CHECK(world.performed<effect::ReplyWhenJournaled>().size() == 1);
}

TEST_CASE("usage records: the worker hears that the disk is full, so that it repeats them") {
  UsageWorld world;
  world.disk_full = true;
  CHECK(world.refusal(world.report({world.usage(1)})) == Errc::DiskFull);
  world.disk_full = false;
  world.answer<wire::Empty>(world.report({world.usage(1)}));
}

TEST_CASE("usage records: a worker cannot charge another worker's or tenant's lease") {
  UsageWorld world;
  world.attach_worker("w1", ConnectionId{11});
  wire::UsageRecord other_tenant = world.usage(2);
  other_tenant.tenant = {"b"};
  wire::UsageRecord never_granted = world.usage(2);
  never_granted.lease = {0, 1'000'000};

  CHECK(world.refusal(world.report({world.usage(1)}, ConnectionId{11})) == Errc::PermissionDenied);
  CHECK(world.refusal(world.report({world.usage(1), other_tenant})) == Errc::PermissionDenied);
  CHECK(world.refusal(world.report({never_granted})) == Errc::PermissionDenied);
  CHECK(world.refusal(world.report({world.usage(1)}, kHolder)) == Errc::PermissionDenied);
  CHECK(world.rows<journal::UsageRow>().empty());
}

TEST_CASE(
    "usage records: a lease that has ended is charged, and one whose slot is used again too") {
  UsageWorld world;
  world.revoke(world.lease);
  world.answer<wire::Empty>(world.report({world.usage(1)}));
  CHECK(world.rows<journal::UsageRow>().at(0).lease_known);

  wire::UsageRecord old = world.usage(2);
  for (int i = 0;
       i < 10'000 && world.state.leases.generation(old.lease.slot) <= old.lease.generation; ++i) {
    world.revoke(world.acquired("a"));
  }
  world.answer<wire::Empty>(world.report({old}));
  CHECK_FALSE(world.rows<journal::UsageRow>().at(1).lease_known);
}

TEST_CASE("revocation records: one for each lease, in the transaction of its row") {
  UsageWorld world;
  const LeaseId second = world.acquired("a");
  world.forget_effects();
  world.begin_unit(world.worker, Touches::TenantMemory);  // no fence yet

  world.call(kOperator, wire::LeaseRevoke{.tenant = TenantId{"a"}});

  const auto rows = world.rows<journal::RevocationRow>();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].reason == RevokeReason::Operator);
  CHECK(rows[0].tenant.value == "a");
  CHECK(rows[0].worker_name == "w0");
  CHECK(rows[1].lease == second);
  bool found = false;
  for (const auto& written : world.performed<effect::Journal>()) {
    int leases = 0;
    int revocations = 0;
    for (const journal::Row& row : written.batch.rows) {
      leases += std::holds_alternative<journal::LeaseRow>(row) ? 1 : 0;
      revocations += std::holds_alternative<journal::RevocationRow>(row) ? 1 : 0;
    }
    found = found || (leases == 2 && revocations == 2);
  }
  CHECK(found);
}

TEST_CASE("revocation records: a lease that its holder releases has none") {
  UsageWorld world;
  world.call(kHolder, wire::LeaseRelease{.lease = world.lease});
  CHECK(world.rows<journal::RevocationRow>().empty());
}
