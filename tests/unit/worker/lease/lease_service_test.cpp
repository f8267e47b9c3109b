// When a worker may answer the broker's calls about memory. The tests run the engine's loop by
// hand.
#include "worker/lease/lease_service.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/lease/lease_service_fixture.hpp"

namespace leasehold {
namespace {

using Fixture = testing::LeaseServiceFixture;

/// As a card whose driver registers no more host memory.
class RefusingMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd, std::size_t, MapAccess) const override {
    return fail(Errc::OutOfMemory, "registering 2097152 bytes");
  }
};

}  // namespace

TEST_CASE("unmap: the memory of a lease that is revoked but not fenced stays mapped") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t");
  fixture.rig.revoke(lease);

  fixture.call(wire::LeaseUnmap{.lease = lease});

  fixture.check_refused();
  CHECK(fixture.rig.engine().unmap_lease(lease));  // it was still mapped
  CHECK(fixture.fenced.empty());
}

TEST_CASE("unmap: a fenced lease is unmapped at once, even during a step") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t");
  fixture.rig.fence(lease);

  fixture.call(wire::LeaseUnmap{.lease = lease});

  fixture.check_done();
  CHECK_FALSE(fixture.rig.engine().unmap_lease(lease));
  CHECK(fixture.fenced == std::vector{lease});
}

TEST_CASE("unmap: memory not yet in the engine is unmapped before the answer") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
  fixture.grant(lease);
  fixture.run_mapper();
  fixture.check_done();  // mapped, but not in the engine yet
  fixture.rig.fence(lease);

  fixture.call(wire::LeaseUnmap{.lease = lease});

  fixture.run_mapper();
  REQUIRE_FALSE(fixture.answer);
  fixture.run_engine();
  fixture.check_done();
  CHECK_FALSE(fixture.rig.engine().unmap_lease(lease));
}

TEST_CASE("unmap: an unmap does not overtake a grant that is being mapped") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
  fixture.grant(lease);
  fixture.rig.fence(lease);

  fixture.call(wire::LeaseUnmap{.lease = lease});
  fixture.run_engine();

  REQUIRE_FALSE(fixture.answer);
  fixture.run_mapper();
  fixture.run_engine();
  fixture.check_done();
  CHECK_FALSE(fixture.rig.engine().unmap_lease(lease));
}

TEST_CASE(
    "grant: the first memory of a lease is answered before the step ends, however much it is") {
  for (const std::uint64_t count : {1u, 25u}) {
    Fixture fixture;
    const LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
    std::vector<ExtentId> extents;
    for (std::uint64_t i = 0; i < count; ++i) extents.push_back(ExtentId{1'000 + i});
    fixture.grant(lease, extents);
    REQUIRE_FALSE(fixture.answer);  // not mapped yet

    fixture.run_mapper();

    fixture.check_done();
    const Tenancy& tenancy = fixture.rig.engine().scheduler().tenancies().at(lease);
    CHECK(tenancy.pool.total_blocks() == 0);  // the step goes on
    fixture.run_engine();
    CHECK(tenancy.pool.total_blocks() > 0);
  }
}

TEST_CASE("grant: a command that follows the answer finds the memory in the engine") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
  fixture.grant(lease);
  fixture.run_mapper();
  fixture.check_done();

  fixture.call(wire::LeaseReclaim{.lease = lease, .count = 1});  // as the tenant's first call would
  fixture.run_engine();

  fixture.check_done();
  CHECK(fixture.redeliveries().empty());
}

TEST_CASE("grant: a growth is answered once the engine has it all, so no step asks twice") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
  fixture.grant(lease);
  fixture.run_mapper();
  fixture.run_engine();
  const auto second_pool = GENERATE(wire::MemoryPool::Kv, wire::MemoryPool::Swap);
  fixture.grant(lease, {ExtentId{1'001}});
  fixture.grant(lease, {ExtentId{1'002}}, second_pool);
  fixture.answer.reset();

  fixture.run_mapper();

  REQUIRE_FALSE(fixture.answer);
  fixture.run_engine();
  fixture.check_done();
}

TEST_CASE("grant: adopted memory is answered once the engine has read its records") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
  fixture.grant(lease, {ExtentId{1'000}}, wire::MemoryPool::Kv, LeaseId{7, 1});

  fixture.run_mapper();

  REQUIRE_FALSE(fixture.answer);
  fixture.run_engine();
  fixture.check_done();
}

TEST_CASE(
    "grant: an extent of swap joins the swap pool, is reclaimed from it, and is redelivered") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t");
  const Tenancy& tenancy = fixture.rig.engine().scheduler().tenancies().at(lease);
  const std::uint32_t kv_blocks = tenancy.pool.total_blocks();
  fixture.grant(lease, wire::MemoryPool::Swap);
  fixture.run_mapper();
  fixture.run_engine();
  fixture.check_done();
  CHECK(tenancy.swap.total_blocks() > 0);
  CHECK(tenancy.pool.total_blocks() == kv_blocks);
  CHECK(fixture.redeliveries().size() == 1);

  fixture.call(wire::LeaseReclaim{.lease = lease, .count = 9, .pool = wire::MemoryPool::Swap});
  fixture.run_engine();
  fixture.check_done();
  CHECK(tenancy.swap.total_blocks() == 0);
  CHECK(tenancy.pool.total_blocks() == kv_blocks);
  CHECK(fixture.redeliveries().empty());
}

TEST_CASE("grant: swap that a device does not register is refused, and KV memory still joins") {
  const RefusingMapper refusing;
  Fixture fixture(Fixture::SettleMode::BetweenSteps, refusing);
  const LeaseId lease = fixture.rig.grant("t");
  const Tenancy& tenancy = fixture.rig.engine().scheduler().tenancies().at(lease);
  const std::uint32_t kv_blocks = tenancy.pool.total_blocks();
  fixture.grant(lease, wire::MemoryPool::Swap);
  fixture.run_mapper();
  REQUIRE(fixture.answer);
  REQUIRE_FALSE(fixture.answer->has_value());
  CHECK(fixture.answer->error().code == Errc::OutOfMemory);
  CHECK(fixture.answer->error().detail.starts_with("extent 1000: registering"));
  CHECK(fixture.redeliveries().empty());
  CHECK(tenancy.swap.total_blocks() == 0);

  fixture.grant(lease);
  fixture.run_mapper();
  fixture.run_engine();
  fixture.check_done();
  CHECK(tenancy.pool.total_blocks() > kv_blocks);
}

TEST_CASE("settle: a live lease is refused") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t");

  fixture.call(wire::LeaseSettle{.lease = lease});

  fixture.check_refused();
}

TEST_CASE("settle: the answer comes between two steps") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t");
  fixture.rig.revoke(lease);

  fixture.call(wire::LeaseSettle{.lease = lease});

  REQUIRE_FALSE(fixture.answer);
  fixture.run_engine();
  fixture.check_done();
}

TEST_CASE("settle: with a callback, the answer waits for the device's launches") {
  Fixture fixture(Fixture::SettleMode::Manual);
  const LeaseId lease = fixture.rig.grant("t");
  fixture.rig.revoke(lease);

  fixture.call(wire::LeaseSettle{.lease = lease});
  fixture.run_engine();

  REQUIRE(fixture.settle_scope);
  REQUIRE_FALSE(fixture.answer);
  fixture.say_settled();
  fixture.check_done();
}

TEST_CASE("settle: only a lease that was granted KV memory waits for less than every launch") {
  Fixture fixture(Fixture::SettleMode::Manual);
  const LeaseId kv = fixture.rig.grant("t", /*extents=*/0);
  fixture.grant(kv);
  const LeaseId other = fixture.rig.grant("t");
  for (const LeaseId lease : {kv, other}) {
    fixture.rig.revoke(lease);
    fixture.call(wire::LeaseSettle{.lease = lease});
    CHECK(fixture.settle_scope ==
          (lease == kv ? SettleScope::TenantMemory : SettleScope::Everything));
    fixture.say_settled();
  }
}

TEST_CASE("redeliver: it waits until the engine has all granted memory") {
  Fixture fixture;
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  fixture.when_installed(count);
  CHECK(calls == 1);  // nothing is being mapped
  fixture.grant(fixture.rig.grant("t", /*extents=*/0));
  fixture.when_installed([] { FAIL("a later call replaced this one"); });
  fixture.when_installed(count);

  fixture.run_mapper();
  CHECK(calls == 1);
  fixture.run_engine();

  CHECK(calls == 2);
}

TEST_CASE("redeliver: memory that is still being mapped is included") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
  fixture.grant(lease);

  const auto redeliveries = fixture.redeliveries();

  REQUIRE(redeliveries.size() == 1);
  CHECK(redeliveries.front().message.lease == lease);
  CHECK(redeliveries.front().fds.size() == 1);
}

TEST_CASE("grant: an adapter's memory is in the engine, and no request can run under its lease") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant_adapter();
  fixture.rig.engine().drop_lease(lease);
  fixture.grant_adapter(lease, {ExtentId{1'001}, ExtentId{1'000}});
  fixture.run_mapper();
  fixture.check_done();
  CHECK(fixture.adapters.empty());

  fixture.run_engine();

  CHECK(fixture.adapters == std::vector{lease});
  CHECK(fixture.rig.engine().memory().extents(lease).size() == 2);
  CHECK_FALSE(fixture.rig.engine().scheduler().tenancies().contains(lease));
  CHECK(fixture.redeliveries().size() == 1);
  fixture.rig.fence(lease);
  fixture.call(wire::LeaseUnmap{.lease = lease});
  fixture.check_done();
  CHECK(fixture.rig.engine().memory().extents(lease).empty());
  CHECK(fixture.redeliveries().empty());
}

TEST_CASE("grant: a repeated grant leaves an adapter's memory where it is") {
  Fixture fixture;
  const LeaseId lease = fixture.rig.grant_adapter();
  fixture.rig.engine().drop_lease(lease);
  const auto grant = [&] {
    fixture.grant_adapter(lease, {ExtentId{1'000}});
    fixture.run_mapper();
    fixture.run_engine();
    return fixture.rig.engine().memory().extents(lease).front().base;
  };
  const Leased<std::byte> first = grant();
  CHECK(grant() == first);
}

}  // namespace leasehold
