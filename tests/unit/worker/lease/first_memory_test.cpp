// Which memory has pages when it is granted. The tests run the threads by hand.
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

TEST_CASE("first memory: the first memory of a tenant has no pages, later memory has") {
  IdleLease idle;
  idle.grant(2, wire::MemoryPool::Kv);
  idle.grant(3, wire::MemoryPool::Swap);
  CHECK(idle.fixture.touched_bytes() ==
        TouchedBytes{{{1}, 0}, {{2}, kExtentBytes}, {{3}, kExtentBytes}});
}

TEST_CASE("first memory: the memory of an adapter has pages, because it is filled next") {
  Fixture fixture;
  fixture.grant_adapter(fixture.rig.grant("t"), {ExtentId{1}});
  fixture.run_mapper();
  CHECK(fixture.touched_bytes() == TouchedBytes{{{1}, kExtentBytes}});
}

}  // namespace leasehold
