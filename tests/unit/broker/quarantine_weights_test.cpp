// Quarantined weights regions and their release.
#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

/// A loader wrote to unpublished weights after its lease was fenced.
struct QuarantinedWeights : World {
  AttachmentId loader = attach_worker("w0", kWorkerSocket);
  wire::WeightsOpened opened = answer<wire::WeightsOpened>(
      call(kWorkerSocket, wire::WeightsOpen{.model = "m", .size_bytes = kMiB}));
  QuarantinedWeights() {
    region_bytes = 4096;
    revoke(opened.lease);
  }
  CallId release() {
    return call(kOperator, wire::QuarantineRelease{.region = opened.region, .reason = kReason}, 7);
  }
  std::string object() const { return "region:" + std::to_string(opened.region.value); }
};

}  // namespace

TEST_CASE("quarantine: weights of a loader that exited can be released") {
  World world;
  const AttachmentId worker = world.attach_worker("w0", kWorkerSocket);
  world.region_bytes = 4096;
  const CallId open = world.call(
      kWorkerSocket, wire::WeightsOpen{.model = "m", .layout_digest = "d", .size_bytes = kMiB});
  const RegionId region = world.answer<wire::WeightsOpened>(open).region;
  world.post(WorkerExited{exit_of(worker)});
  REQUIRE(quarantine_views(world.state).size() == 1);
  CHECK(quarantine_views(world.state)[0].region == region);
  CHECK(quarantine_views(world.state)[0].worker == "w0");

  const CallId call =
      world.call(kOperator, wire::QuarantineRelease{.region = region, .reason = kReason});

  CHECK(world.answer<wire::QuarantineReleased>(call).size_bytes == kMiB);
  CHECK(world.state.weights.free_bytes() == 64 * kMiB);
}

TEST_CASE("quarantine: a loader that wrote after its fence gets no more leases") {
  QuarantinedWeights world;

  REQUIRE(quarantine_views(world.state).size() == 1);
  CHECK(quarantine_views(world.state)[0].why.find("4096 bytes") != std::string::npos);
  const auto told = world.recorded<events::WorkerUntrusted>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].what == "weights");
  CHECK(told[0].index == world.opened.region.value);
  CHECK(told[0].worker == "w0");
  CHECK(worker_views(world.state, world.clock.now())[0].state == "lost");
  CHECK(world.state.weights.free_bytes() == 63 * kMiB);
}

TEST_CASE("quarantine: weights that their loader still writes to stay quarantined until it exits") {
  QuarantinedWeights world;

  for (int tries = 0; tries < 2; ++tries) {
    REQUIRE(world.refusal(world.release()) == Errc::StillWritable);
    CHECK(world.state.weights.find(world.opened.region)->state == RegionState::Quarantined);
    const auto action = world.recorded<events::OperatorAction>().back();
    CHECK(action.object == world.object());
    CHECK_FALSE(action.done);
  }
  world.post(WorkerExited{exit_of(world.loader)});
  CHECK(world.state.weights.find(world.opened.region)->state == RegionState::Quarantined);

  CHECK(world.answer<wire::QuarantineReleased>(world.release()).size_bytes == kMiB);
  CHECK(world.performed<effect::CloseRegion>().size() == 1);
  CHECK(world.state.weights.free_bytes() == 64 * kMiB);
  const auto action = world.recorded<events::OperatorAction>().back();
  CHECK(action.object == world.object());
  CHECK(action.reason == kReason);
  CHECK(action.done);
}

TEST_CASE("quarantine: weights that are empty on release are freed while their loader runs") {
  QuarantinedWeights world;
  world.region_bytes = 0;

  CHECK(world.answer<wire::QuarantineReleased>(world.release()).size_bytes == kMiB);
  CHECK(world.state.weights.regions().empty());
  CHECK_FALSE(world.journal.regions.contains(world.opened.region));
}

TEST_CASE(
    "quarantine: weights quarantined before a restart are released after their loader exits") {
  QuarantinedWeights before;
  World after(before, {});
  const auto clear = [&] {
    return after.call(kOperator,
                      wire::QuarantineRelease{.region = before.opened.region, .reason = kReason});
  };

  const CallId call = clear();
  REQUIRE(after.refusal(call) == Errc::StillWritable);
  CHECK(after.answers.at(call).error().detail.find("end that worker") != std::string::npos);
  CHECK(after.state.weights.find(before.opened.region)->state == RegionState::Quarantined);

  after.post(WorkerExited{exit_of(before.loader)});
  after.answer<wire::QuarantineReleased>(clear());
  CHECK(after.state.weights.regions().empty());
}

TEST_CASE("quarantine: releasing weights that are not quarantined names their state") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  const auto opened = world.answer<wire::WeightsOpened>(
      world.call(kWorkerSocket, wire::WeightsOpen{.model = "m", .size_bytes = kMiB}));
  const CallId call =
      world.call(kOperator, wire::QuarantineRelease{.region = opened.region, .reason = kReason});
  REQUIRE(world.refusal(call) == Errc::IllegalTransition);
  CHECK(world.answers.at(call).error().detail.find("Loading") != std::string::npos);
  CHECK(world.record(opened.lease).is(LeaseState::Live));
}
