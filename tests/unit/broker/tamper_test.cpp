#include <catch2/catch.hpp>

#include "broker/server/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

std::vector<events::WorkerUntrusted> recorded(const World& world) {
  std::vector<events::WorkerUntrusted> found;
  for (const NumberedEvent& event : world.log.after(0, 1000)) {
    const auto* untrusted = std::get_if<events::WorkerUntrusted>(&event.stamped.event);
    if (untrusted != nullptr) found.push_back(*untrusted);
  }
  return found;
}

}  // namespace

TEST_CASE("tampering: a live lease in a changed slot is revoked with worker_untrusted") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  world.admit_tenant("a");
  const LeaseId lease = world.acquired("a");
  const LeaseId other = world.acquired("a");

  world.post(TableTampered{{{TablePart::Slot, lease.slot}}});

  CHECK(reason_of(world.record(lease).lease) == RevokeReason::WorkerUntrusted);
  CHECK(world.record(other).is(LeaseState::Live));
  REQUIRE(recorded(world).size() == 1);
  CHECK(recorded(world)[0].what == "slot");
  CHECK(recorded(world)[0].lease == to_string(lease));
  CHECK(recorded(world)[0].worker == "w0");
  CHECK(world.warnings.size() == 1);
  CHECK(status_view(world.state, world.clock.now()).tampered == 1);
}

TEST_CASE("tampering: changed counters, header and unused slots revoke no lease") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  world.admit_tenant("a");
  const LeaseId lease = world.acquired("a");

  world.post(TableTampered{
      {{TablePart::Counter, 0}, {TablePart::Header, 0}, {TablePart::Slot, lease.slot + 1}}});

  CHECK(world.record(lease).is(LeaseState::Live));
  REQUIRE(recorded(world).size() == 3);
  CHECK(recorded(world)[0].worker == "w0");
  CHECK(recorded(world)[1].what == "header");
  CHECK(recorded(world)[2].lease.empty());
  CHECK(world.state.tampered == 3);
}

TEST_CASE("tampering: a change of the whole table logs a bounded number of warnings") {
  World world;
  std::vector<TableEntry> entries;
  for (std::uint32_t slot = 0; slot < 1000; ++slot) entries.push_back({TablePart::Slot, slot});

  world.post(TableTampered{entries});

  CHECK(recorded(world).size() == 32);
  CHECK(world.state.tampered == 1000);
}

TEST_CASE("tampering: a worker cannot report events of the broker") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  const auto report = [&](events::Event event) {
    world.post(WorkerReported{kWorkerSocket, {std::move(event), world.clock.now()}});
  };

  report(events::WorkerUntrusted{.what = "slot"});
  report(
      events::OperatorAction{.action = "quarantine_release", .object = "extent:1", .reason = "r"});

  CHECK(recorded(world).empty());
  CHECK(world.warnings.size() == 2);
}
