// When the memory of a tenant's lease gets pages. The tests run the threads by hand.
#include "worker/lease/idle_memory.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/lease/lease_service_fixture.hpp"

namespace leasehold {
namespace {

using Fixture = testing::LeaseServiceFixture;
using TouchedBytes = std::map<ExtentId, std::uint64_t>;

constexpr std::uint64_t kExtentBytes = 2u << 20;

/// A lease with one extent, which the engine has and no request used.
struct IdleLease {
  IdleLease() { grant(1, wire::MemoryPool::Kv); }

  void grant(std::uint64_t extent, wire::MemoryPool pool) {
    fixture.grant(lease, {ExtentId{extent}}, pool);
    fixture.run_mapper();
    fixture.run_engine();
    fixture.check_done();
  }

  Fixture fixture;
  LeaseId lease = fixture.rig.grant("t", /*extents=*/0);
};

}  // namespace

TEST_CASE("idle memory: the first memory of a tenant has no pages, later memory has") {
  IdleLease idle;
  idle.grant(2, wire::MemoryPool::Kv);
  idle.grant(3, wire::MemoryPool::Swap);
  CHECK(idle.fixture.touched_bytes() ==
        TouchedBytes{{{1}, 0}, {{2}, kExtentBytes}, {{3}, kExtentBytes}});
}

TEST_CASE("idle memory: the memory of an adapter has pages, because it is filled next") {
  Fixture fixture;
  fixture.grant_adapter(fixture.rig.grant("t"), {ExtentId{1}});
  fixture.run_mapper();
  CHECK(fixture.touched_bytes() == TouchedBytes{{{1}, kExtentBytes}});
}

TEST_CASE("idle memory: the first request of the lease makes the pages, later ones do not") {
  IdleLease idle;
  idle.fixture.use(idle.lease);
  CHECK(idle.fixture.touched_bytes() == TouchedBytes{{{1}, 0}});  // not on the I/O thread
  idle.fixture.run_mapper();
  CHECK(idle.fixture.touched_bytes() == TouchedBytes{{{1}, kExtentBytes}});

  idle.fixture.granted_memory().at({1}).punch().value();
  idle.fixture.use(idle.lease);
  idle.fixture.run_mapper();
  CHECK(idle.fixture.touched_bytes() == TouchedBytes{{{1}, 0}});
}

TEST_CASE("idle memory: pages made after the broker's punch are gone when the unmap is answered") {
  IdleLease idle;
  const auto granted = idle.fixture.granted_memory();
  idle.fixture.use(idle.lease);
  idle.fixture.rig.fence(idle.lease);  // the broker punches here

  idle.fixture.call(wire::LeaseUnmap{.lease = idle.lease});
  idle.fixture.run_engine();

  REQUIRE_FALSE(idle.fixture.answer);
  idle.fixture.run_mapper();
  idle.fixture.check_done();
  CHECK(granted.at({1}).allocated_bytes().value() == 0);
}

TEST_CASE("idle memory: a request that arrives after the fence makes no pages") {
  IdleLease idle;
  const auto granted = idle.fixture.granted_memory();
  idle.fixture.rig.fence(idle.lease);
  idle.fixture.use(idle.lease);
  idle.fixture.call(wire::LeaseUnmap{.lease = idle.lease});
  idle.fixture.check_done();
  idle.fixture.run_mapper();
  CHECK(granted.at({1}).allocated_bytes().value() == 0);
}

TEST_CASE("idle memory: an extent is returned once no thread makes pages in it") {
  IdleLease idle;
  const auto granted = idle.fixture.granted_memory();
  idle.fixture.use(idle.lease);
  idle.fixture.call(wire::LeaseReclaim{.lease = idle.lease, .count = 1});
  idle.fixture.run_engine();

  REQUIRE_FALSE(idle.fixture.answer);
  idle.fixture.run_mapper();
  idle.fixture.check_done();
  CHECK(granted.at({1}).allocated_bytes().value() == kExtentBytes);  // the broker punches it now
}

}  // namespace leasehold
