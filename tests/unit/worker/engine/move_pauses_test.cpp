// How much time copies of moving requests may take.
#include "worker/engine/move_pauses.hpp"

#include <catch2/catch.hpp>
#include <chrono>

namespace leasehold::testing {
namespace {

using std::chrono::milliseconds;

const TenantId kMover{"mover"};
const TenantId kOther{"other"};

TimePoint at(int ms) {
  return TimePoint{} + milliseconds(ms);
}

}  // namespace

TEST_CASE("move pauses: no tenant waits before the first move") {
  MovePauses pauses;
  CHECK(pauses.check(kMover, at(5)));
}

TEST_CASE("move pauses: copies of a tenant take at most a twentieth of the time") {
  MovePauses pauses;
  pauses.note(kMover, at(100), at(110));
  const auto refused = pauses.check(kMover, at(309));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::QueueFull);
  CHECK(refused.error().retry_after_ms == 1);
  CHECK(refused.error().detail == "tenant mover moved a request just now; retry in 1 ms");
  CHECK(pauses.check(kMover, at(310)));
}

TEST_CASE("move pauses: copies of all tenants take at most a fifth of the time") {
  MovePauses pauses;
  pauses.note(kMover, at(100), at(110));
  const auto refused = pauses.check(kOther, at(120));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().retry_after_ms == 30);
  CHECK(refused.error().detail == "another tenant moved a request just now; retry in 30 ms");
  CHECK(pauses.check(kOther, at(150)));
  CHECK_FALSE(pauses.check(kMover, at(150)));
}

}  // namespace leasehold::testing
