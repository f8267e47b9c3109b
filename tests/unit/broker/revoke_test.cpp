#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

TEST_CASE("revoke: word and counter are the first effects") {
  LeasedWorld world;
  world.revoke(world.lease);
  REQUIRE(std::holds_alternative<effect::StoreWords>(world.effects.at(0)));
  CHECK(std::holds_alternative<effect::BeginQuietWatch>(world.effects.at(1)));
}

TEST_CASE("revoke: a lease is fenced only after the unit running at the flip has ended") {
  LeasedWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);

  world.revoke(world.lease);
  world.advance(1s);

  CHECK(world.record(world.lease).is(LeaseState::Revoked));
  CHECK(world.extent_state() == ExtentState::Draining);
  CHECK(world.performed<effect::PunchExtents>().empty());
  world.end_unit(world.worker);
  CHECK(world.proof_of(world.lease) == "LaunchQuiet");
  CHECK(world.record(world.lease).end.clocks.quiet_ns == 1'000'000'000);
}

TEST_CASE("revoke: clocks count from the time stored in the table") {
  LeasedWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  world.post(WordsStored{.leases = {world.lease}, .at = world.clock.now() + 300ms});

  world.advance(1s);
  world.end_unit(world.worker);

  CHECK(world.record(world.lease).end.clocks.quiet_ns == 700'000'000);
}

TEST_CASE("revoke: a unit that touches only weights delays no tenant's fence") {
  LeasedWorld world;
  world.begin_unit(world.worker, Touches::WeightsAndScratch);
  world.revoke(world.lease);
  CHECK(world.proof_of(world.lease) == "LaunchQuiet");
}

TEST_CASE("fence: memory is punched at once and freed after the unmap") {
  LeasedWorld world;
  world.workers_answer = false;

  world.revoke(world.lease);

  CHECK(world.extent_state() == ExtentState::Scrubbing);
  CHECK(world.performed<effect::PunchExtents>().size() == 1);
  CHECK(world.performed<effect::VerifyExtents>().empty());
  world.clock.advance(3ms);
  world.answer_unmap();
  CHECK(world.state.extents.records().empty());
  CHECK(world.objects.empty());
  CHECK(world.record(world.lease).end.clocks.reuse_ns == 3'000'000);
}

TEST_CASE("fence: memory that is not zero after its fence is quarantined") {
  LeasedWorld world;
  const ExtentId extent = world.record(world.lease).extents.at(0);
  world.touched.insert(extent);

  world.revoke(world.lease);

  CHECK(world.state.extents.find(extent)->state == ExtentState::Quarantined);
  CHECK(world.state.extents.free_extents() == 15);
  CHECK(world.warnings.size() == 1);
}

TEST_CASE("fence: a grant in flight is punched again after its unmap") {
  LeasedWorld world;
  world.workers_answer = false;
  world.acquire("a");
  const LeaseId late = world.grants.front().grant.lease;
  world.revoke(late);  // fenced before the worker maps the grant
  CHECK(world.proof_of(late) == "LaunchQuiet");
  world.answer_grant();
  world.forget_effects();
  world.answer_unmap();
  CHECK(std::holds_alternative<effect::PunchExtents>(world.effects.at(0)));
  CHECK(world.state.extents.records().size() == 1);  // of the other lease
}

TEST_CASE("revoke: repeating it has no effect, and a fenced or reused lease is an error") {
  LeasedWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  const auto counter = world.table.revocations(WorkerId{0});
  CHECK(world.answers.at(world.revoke(world.lease)).has_value());
  CHECK(world.table.revocations(WorkerId{0}) == counter);
  world.end_unit(world.worker);
  CHECK(world.refusal(world.revoke(world.lease)) == Errc::LeaseFenced);
  CHECK(world.refusal(world.revoke(LeaseId{50, 1})) == Errc::UnknownLease);
  CHECK(world.refusal(world.revoke(LeaseId{5000, 1})) == Errc::UnknownLease);

  for (int i = 0; i < 64; ++i)
    world.revoke(world.acquired("a"));  // every slot has a new generation
  CHECK(world.refusal(world.revoke(world.lease)) == Errc::StaleGeneration);
}

TEST_CASE("revoke: a thousand leases of one worker move its counter once") {
  BrokerConfig config = small_config();
  config.slot_count = 1024;
  config.capacity_bytes = 2048 * kMiB;
  LeasedWorld world(config);
  world.admit_tenant("a", 1 << 20);
  for (int i = 1; i < 1000; ++i) world.acquired("a", 1);
  world.begin_unit(world.worker, Touches::TenantMemory);
  const auto before = world.table.revocations(WorkerId{0});
  world.forget_effects();

  world.call(kOperator, wire::LeaseRevoke{.tenant = TenantId{"a"}});

  const auto taken = world.performed<effect::StoreWords>();
  REQUIRE(taken.size() == 1);
  CHECK(taken.at(0).changes.size() == 1000);
  CHECK(world.performed<effect::BeginQuietWatch>().size() == 1);  // and one snapshot
  CHECK(world.table.revocations(WorkerId{0}) == before + 1);
}

TEST_CASE("ttl: a lease that is not renewed expires at its deadline, a renewed one does not") {
  LeasedWorld world;
  world.advance(6s);
  world.call(kHolder, wire::LeaseRenew{.lease = world.lease});
  world.advance(6s);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  world.advance(4s);
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::TtlExpired);
  CHECK(world.refusal(world.call(kHolder, wire::LeaseRenew{.lease = world.lease})) ==
        Errc::LeaseFenced);
}

TEST_CASE("ttl: a renewal after the deadline finds the lease expired even without a timer") {
  LeasedWorld world;
  world.clock.advance(10s);
  const CallId late = world.call(kHolder, wire::LeaseRenew{.lease = world.lease});
  CHECK(world.refusal(late) == Errc::LeaseRevoked);
}

TEST_CASE("ttl: only the holder renews or releases") {
  LeasedWorld world;
  const ConnectionId stranger{77};
  CHECK(world.refusal(world.call(stranger, wire::LeaseRenew{.lease = world.lease})) ==
        Errc::UnknownLease);
  CHECK(world.refusal(world.call(stranger, wire::LeaseRelease{.lease = world.lease})) ==
        Errc::UnknownLease);
}

TEST_CASE("release: the holder ends its lease") {
  LeasedWorld world;
  CHECK(world.answers.at(world.call(kHolder, wire::LeaseRelease{.lease = world.lease})));
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::Released);
}

TEST_CASE("holder: the end of its socket or process revokes its leases") {
  LeasedWorld world;
  const bool by_socket = GENERATE(true, false);
  if (by_socket) world.post(ConnectionClosed{kHolder});
  if (!by_socket) world.post(HolderExited{kHolder});
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::HolderGone);
  CHECK(world.record(world.lease).is(LeaseState::Fenced));
}

TEST_CASE("drain: queries show the draining lease and its deadline") {
  LeasedWorld world;
  const LeaseId lease = world.lease;
  world.call(kOperator, wire::LeaseDrain{.lease = lease, .grace_ms = 5'000}, 7);

  const auto until = (world.clock.now() + std::chrono::seconds(5)).boottime_ns;
  CHECK(lease_page(world.state, lease.slot, 1).items.at(0).drain_deadline_boottime_ns == until);
  const auto draining = world.recorded<events::LeaseDraining>();
  const auto actions = world.recorded<events::OperatorAction>();
  REQUIRE(draining.size() == 1);
  CHECK(draining[0].lease == lease);
  CHECK(draining[0].deadline_boottime_ns == until);
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].action == "admit");
  CHECK(actions[1].action == "drain");
  CHECK(actions[1].object == "lease:" + to_string(lease));
  CHECK(actions[1].uid == 7);
}

TEST_CASE("drain: the lease may grow, and is revoked after the grace") {
  LeasedWorld world;
  const TimePoint until = world.clock.now() + 5s;
  world.call(kOperator, wire::LeaseDrain{.lease = world.lease, .grace_ms = 5000});
  CHECK(world.performed<effect::SetDrainDeadline>().at(0).deadline == until);
  CHECK(world.performed<effect::SetDrainDeadline>().at(0).worker == world.worker);
  const CallId grow = world.call(kHolder, wire::LeaseGrow{.lease = world.lease});
  CHECK(world.answer<wire::LeaseResized>(grow).extents == 2);
  world.advance(4s);
  world.call(kHolder, wire::LeaseRenew{.lease = world.lease});
  CHECK(world.record(world.lease).is(LeaseState::Live));
  world.advance(1s);
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::DrainDeadline);
}

TEST_CASE("drain: the worker's report ends the lease at once, and a repeated one changes nothing") {
  LeasedWorld world;
  world.call(kOperator, wire::LeaseDrain{.lease = world.lease});
  for (int repeat = 0; repeat < 2; ++repeat) {
    world.answer<wire::Empty>(world.call(kWorkerSocket, wire::LeaseDrained{.lease = world.lease}));
    CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::Released);
    CHECK(world.record(world.lease).is(LeaseState::Fenced));
  }
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("drain: a false report still needs the proof before the fence") {
  LeasedWorld world;
  world.call(kOperator, wire::LeaseDrain{.lease = world.lease});
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.call(kWorkerSocket, wire::LeaseDrained{.lease = world.lease});
  CHECK(world.record(world.lease).is(LeaseState::Revoked));
  CHECK(world.extent_state() == ExtentState::Draining);
  world.end_unit(world.worker);
  world.advance(1ms);
  CHECK(world.record(world.lease).is(LeaseState::Fenced));
}

TEST_CASE("drain: a report ends no lease that does not drain or is on another worker") {
  LeasedWorld world;
  world.attach_worker("w1", ConnectionId{11});
  CHECK(world.refusal(world.call(kWorkerSocket, wire::LeaseDrained{.lease = world.lease})) ==
        Errc::IllegalTransition);
  world.call(kOperator, wire::LeaseDrain{.lease = world.lease});
  for (const ConnectionId other : {ConnectionId{11}, kHolder, kOperator}) {
    CHECK(world.refusal(world.call(other, wire::LeaseDrained{.lease = world.lease})) ==
          Errc::PermissionDenied);
  }
  CHECK(world.refusal(world.call(kWorkerSocket, wire::LeaseDrained{.lease = {9, 9}})) ==
        Errc::UnknownLease);
  CHECK(world.record(world.lease).is(LeaseState::Live));
}

TEST_CASE("fence timeout: a worker without proof is killed, and its exit is the proof") {
  LeasedWorld world;
  const LeaseId other = world.acquired("a");
  world.attach_worker("w1", ConnectionId{11});
  world.acquired("a");  // its deadline passes before the killed worker exits
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  world.advance(1999ms);
  CHECK(world.performed<effect::KillWorker>().empty());

  world.advance(1ms);

  CHECK(world.performed<effect::KillWorker>().size() == 1);
  CHECK(reason_of(world.record(other).lease) == RevokeReason::WorkerHung);
  CHECK(world.record(world.lease).is(LeaseState::Revoked));  // SIGKILL alone is not proof
  world.advance(10s);
  CHECK(world.performed<effect::KillWorker>().size() == 1);
  CHECK_FALSE(next_deadline(world.state).has_value());
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.proof_of(world.lease) == "ProcessExit");
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("shutdown: every lease is revoked and nothing is granted") {
  LeasedWorld world;
  world.post(Shutdown{});
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::Operator);
  CHECK(world.refusal(world.acquire("a")) == Errc::Draining);
}
