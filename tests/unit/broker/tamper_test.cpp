#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

TEST_CASE("tampering: a live lease in a changed slot is revoked with worker_untrusted") {
  LeasedWorld world;
  const LeaseId lease = world.lease;
  const LeaseId other = world.acquired("a");

  world.post(TableTampered{{{TablePart::Slot, lease.slot}}});

  CHECK(reason_of(world.record(lease).lease) == RevokeReason::WorkerUntrusted);
  CHECK(world.record(other).is(LeaseState::Live));
  REQUIRE(world.recorded<events::WorkerUntrusted>().size() == 1);
  CHECK(world.recorded<events::WorkerUntrusted>()[0].what == "slot");
  CHECK(world.recorded<events::WorkerUntrusted>()[0].lease == to_string(lease));
  CHECK(world.recorded<events::WorkerUntrusted>()[0].worker == "w0");
  CHECK(world.warnings.size() == 1);
  CHECK(status_view(world.state, world.clock.now()).tampered == 1);
}

TEST_CASE("tampering: changed counters, header and unused slots revoke no lease") {
  LeasedWorld world;
  const LeaseId lease = world.lease;

  world.post(TableTampered{
      {{TablePart::Counter, 0}, {TablePart::Header, 0}, {TablePart::Slot, lease.slot + 1}}});

  CHECK(world.record(lease).is(LeaseState::Live));
  REQUIRE(world.recorded<events::WorkerUntrusted>().size() == 3);
  CHECK(world.recorded<events::WorkerUntrusted>()[0].worker == "w0");
  CHECK(world.recorded<events::WorkerUntrusted>()[1].what == "header");
  CHECK(world.recorded<events::WorkerUntrusted>()[2].lease.empty());
  CHECK(world.state.counts.tampered == 3);
}

TEST_CASE("tampering: a change of the whole table logs a bounded number of warnings") {
  World world;
  std::vector<TableEntry> entries;
  for (std::uint32_t slot = 0; slot < 1000; ++slot) entries.push_back({TablePart::Slot, slot});

  world.post(TableTampered{entries});

  CHECK(world.recorded<events::WorkerUntrusted>().size() == 32);
  CHECK(world.state.counts.tampered == 1000);
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

  CHECK(world.recorded<events::WorkerUntrusted>().empty());
  CHECK(world.warnings.size() == 2);
}
