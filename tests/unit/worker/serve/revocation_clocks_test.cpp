// Which ends of requests move the clock t_error.
#include <numeric>

#include "tests/unit/worker/serve/server_fixture.hpp"
#include "worker/kv/request_ids.hpp"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

std::uint64_t errors_timed(const RequestMetrics& metrics) {
  const auto counts = metrics.clock_error().counts;
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// Runs one step of a request, calls `end_lease`, and delivers what the engine says then, after
/// `before_delivery`. Returns the reason that the tenant reads.
std::string reason_after(
    ServerFixture& fixture, const std::function<void()>& end_lease,
    const std::function<void()>& before_delivery = [] {}) {
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  REQUIRE(fixture.parse() == 1);
  const RequestId engine_id = to_engine_request_id({"ann"}, {"r"});
  REQUIRE(fixture.rig.submit(fixture.rig.request("ann", fixture.lease, engine_id.value,
                                                 fixture.rig.encode("Once upon a time"), 4)));
  REQUIRE(fixture.rig.step());
  end_lease();
  auto report = fixture.rig.step();
  REQUIRE(report);
  before_delivery();
  fixture.server->deliver(std::move(report->events));
  run_until(fixture.io, [&] { return ann->has_ended(); });
  return ann->seen.notifications.back().second.body.at("reason");
}

}  // namespace

TEST_CASE("revocation clocks: a lease that runs out moves none, before and after its word flips") {
  const bool has_flipped = GENERATE(false, true);
  ServerFixture fixture;
  ManualClock& clock = fixture.rig.clock();
  fixture.rig.set_deadline(fixture.lease, clock.now() + 1s);
  const auto run_out = [&] { clock.advance(2s); };
  const auto flip = [&] {
    if (has_flipped) fixture.rig.revoke(fixture.lease, RevokeReason::TtlExpired);
  };
  CHECK(reason_after(fixture, run_out, flip) == "Revoked");
  CHECK(fixture.metrics.completed(CompletionReason::Revoked) == 1);
  CHECK(errors_timed(fixture.metrics) == 0);
}

TEST_CASE("revocation clocks: a revoked lease moves t_error by the time since the flip") {
  ServerFixture fixture;
  CHECK(reason_after(fixture, [&] {
          fixture.rig.revoke(fixture.lease);
          fixture.rig.clock().advance(2ms);
        }) == "Revoked");
  CHECK(errors_timed(fixture.metrics) == 1);
  CHECK(fixture.metrics.clock_error().sum_s == Approx(0.002));
}

}  // namespace leasehold::testing
