// Device memory: proof that its launches have ended, and which worker may get it next.
#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kOtherSocket{11};

BrokerConfig device_config() {
  BrokerConfig config = small_config();
  config.device = "cuda:0";
  config.device_uuid = "GPU-1";
  return config;
}

struct OnDevice : LeasedWorld {
  OnDevice() : LeasedWorld(device_config()) {}
  std::uint32_t free_on(AttachmentId id) { return state.extents.free_extents_for(id); }
};

wire::WeightsOpen weights() {
  return {
      .model = "m", .file_inode = 1, .layout_digest = std::string(64, 'a'), .size_bytes = 8 * kMiB};
}

/// Grows the lease by one extent, which its worker then returns.
ExtentId grow_and_shrink(OnDevice& world) {
  world.call(kHolder, wire::LeaseGrow{.lease = world.lease});
  const ExtentId grown = world.record(world.lease).extents.at(1);
  const CallId shrink = world.call(kHolder, wire::LeaseShrink{.lease = world.lease});
  world.post(ReclaimAnswered{world.lease, shrink, std::vector{grown}});
  return grown;
}

}  // namespace

TEST_CASE("device: worker.attach names the device whose memory is lent") {
  World world(device_config());
  const auto attached = world.answer<wire::WorkerAttached>(
      world.call(kWorkerSocket, wire::WorkerAttach{.worker = "w"}));
  CHECK(attached.device == "cuda:0");
  CHECK(attached.device_uuid == "GPU-1");
}

TEST_CASE("device: a quiet segment fences nothing, the worker's reply for this lease does") {
  OnDevice world;
  world.workers_answer = false;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  CHECK(world.settles.empty());  // not sent before the segment is quiet

  world.end_unit(world.worker);

  REQUIRE(world.settles.size() == 1);
  CHECK(world.settles.front().lease == world.lease);
  CHECK(world.record(world.lease).is(LeaseState::Revoked));
  CHECK(world.unmaps.empty());
  world.answer_settle();
  CHECK(world.proof_of(world.lease) == "WorkerAck");
  CHECK(world.unmaps.size() == 1);
}

TEST_CASE("device: an error reply is not proof, and the fence timeout continues") {
  OnDevice world;
  world.workers_answer = false;
  world.revoke(world.lease);
  world.answer_settle(/*settled=*/false);
  CHECK(world.record(world.lease).is(LeaseState::Revoked));
  CHECK(world.warnings.size() == 1);

  world.advance(2s);

  CHECK(world.performed<effect::KillWorker>().size() == 1);
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.proof_of(world.lease) == "ProcessExit");
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("device: unmapped memory is cleared and held, never punched") {
  OnDevice world;
  world.revoke(world.lease);
  CHECK(world.performed<effect::PunchExtents>().empty());
  CHECK(world.performed<effect::VerifyExtents>().empty());
  CHECK(world.performed<effect::ClearExtents>().size() == 1);
  CHECK(world.extent_state() == ExtentState::Held);
  CHECK(world.state.leases.find_open(world.lease) ==
        nullptr);  // closed, although its extents are held
  CHECK(status_view(world.state, world.clock.now()).held_bytes == 2 * kMiB);
  CHECK(world.journal.extents.at(world.extent).state == ExtentState::Held);
}

TEST_CASE("device: held memory is granted again, to its own worker") {
  OnDevice world;
  world.revoke(world.lease);
  CHECK(world.state.extents.free_extents() == 15);
  CHECK(world.free_on(world.worker) == 16);

  const LeaseId next = world.acquired("a");

  CHECK(world.record(next).extents == std::vector{world.extent});
  CHECK(world.extent_state() == ExtentState::Owned);
  CHECK(world.state.extents.free_extents() == 15);
}

TEST_CASE("device: held memory goes to no other worker while its worker lives") {
  OnDevice world;
  const LeaseId large = world.acquired("a", 15 * 8);
  world.revoke(world.lease);
  world.revoke(large);
  const AttachmentId other = world.attach_worker("w1", kOtherSocket);
  CHECK(world.free_on(other) == 0);

  const CallId refused =
      world.call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .worker = "w1"});

  CHECK(world.refusal(refused) == Errc::PoolExhausted);
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.free_on(other) == 16);
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("device: an extent that the driver does not report free is quarantined") {
  OnDevice world;
  world.revoke(world.lease);
  world.touched.insert(world.extent);  // a process still maps it

  world.post(WorkerExited{exit_of(world.worker)});

  CHECK(world.extent_state() == ExtentState::Quarantined);
  CHECK(quarantine_views(world.state).at(0).why.find("did not report") != std::string::npos);
  CHECK(world.recorded<events::WorkerUntrusted>().empty());
  const CallId cleared = world.call(
      kOperator,
      wire::QuarantineRelease{.extent = world.extent, .reason = "looked with nvidia-smi"});
  CHECK(world.answer<wire::QuarantineReleased>(cleared).size_bytes == 2 * kMiB);
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("device: memory that never left the broker is released at once") {
  OnDevice world;
  world.memory_fails = true;
  CHECK(world.refusal(world.acquire("a")) == Errc::OutOfMemory);
  CHECK(world.state.extents.records().size() == 1);  // of the other lease
  CHECK(world.performed<effect::ClearExtents>().empty());
}

TEST_CASE(
    "device: an extent still being allocated when its lease ends is free, the others are held") {
  OnDevice world;
  world.workers_answer = false;
  world.call(kHolder, wire::LeaseGrow{.lease = world.lease, .extents = 3});
  const std::vector<ExtentId> extents = world.record(world.lease).extents;
  REQUIRE(extents.size() == 4);
  world.still_allocating = {extents.begin() + 2, extents.end()};
  world.revoke(world.lease);
  world.answer_settle();

  world.answer_unmap();

  CHECK(world.extent_state() == ExtentState::Held);
  CHECK(world.state.extents.find(extents[1])->state == ExtentState::Held);
  CHECK(world.state.extents.records().size() == 2);
  CHECK(world.free_on(world.worker) == 16);
  CHECK(world.state.leases.find_open(world.lease) == nullptr);
  CHECK(world.warnings.empty());
}

TEST_CASE("device: an extent that cannot be cleared holds back no other extent") {
  OnDevice world;
  world.workers_answer = false;
  world.call(kHolder, wire::LeaseGrow{.lease = world.lease});
  world.still_allocating = {world.record(world.lease).extents.at(1)};
  world.clear_fails = true;
  world.revoke(world.lease);
  world.answer_settle();

  world.answer_unmap();

  CHECK(world.extent_state() == ExtentState::Held);
  CHECK(world.free_on(world.worker) == 15);
  CHECK(world.warnings.size() == 1);
}

TEST_CASE("device: an extent returned by a shrink is held for its worker") {
  OnDevice world;
  const ExtentId grown = grow_and_shrink(world);

  CHECK(world.state.extents.find(grown)->state == ExtentState::Held);
  CHECK(world.record(world.lease).extents == std::vector{world.extent});
}

TEST_CASE("device: an extent returned by an open lease is released when its worker exits") {
  OnDevice world;
  const ExtentId grown = grow_and_shrink(world);
  REQUIRE(world.state.extents.find(grown)->state == ExtentState::Held);

  world.post(WorkerExited{exit_of(world.worker)});

  CHECK(world.state.extents.records().empty());
  CHECK(world.state.leases.find_open(world.lease) == nullptr);
}

TEST_CASE("device: the end of the agent revokes all leases and the broker continues") {
  OnDevice world;
  const LeaseId engine =
      world.answer<wire::WeightsOpened>(world.call(kWorkerSocket, weights())).lease;
  world.clear_fails = true;

  world.post(DeviceLost{"killed"});

  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::DeviceFault);
  CHECK(reason_of(world.record(engine).lease) == RevokeReason::DeviceFault);
  CHECK(world.extent_state() == ExtentState::Held);  // its worker may still reach it
  CHECK(world.free_on(world.worker) == 15);          // and it is not granted again
  CHECK(world.state.weights.regions().empty());
  CHECK(world.refusal(world.acquire("a")) == Errc::PoolExhausted);
  CHECK(world.refusal(world.call(kWorkerSocket, weights())) == Errc::PoolExhausted);
  CHECK(status_view(world.state, world.clock.now()).device_state == "lost");

  world.post(DeviceRecovered{});

  CHECK(world.record(world.acquired("a")).extents.at(0) != world.extent);
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("device: after a restart a worker's memory is counted until it exits") {
  OnDevice before;
  before.revoke(before.lease);
  const LeaseId open = before.acquired("a", 16);

  World after(before, {.table = false}, device_config());

  CHECK(reason_of(after.record(open).lease) == RevokeReason::WorkerReplaced);
  CHECK(after.state.extents.free_extents() == 14);
  after.post(WorkerExited{exit_of(before.worker)});
  CHECK(after.state.extents.free_extents() == 16);
}

TEST_CASE("device: memory held at a restart stays held and is not granted") {
  OnDevice before;
  before.revoke(before.lease);

  World after(before, {.table = false}, device_config());

  CHECK(after.state.extents.find(before.extent)->state == ExtentState::Held);
  CHECK(after.state.extents.free_extents_for(before.worker) == 15);
  after.post(WorkerExited{exit_of(before.worker)});
  CHECK(after.state.extents.records().empty());
}

TEST_CASE("host: no lease.settle is sent, and no extent is held") {
  LeasedWorld world;
  world.revoke(world.lease);
  CHECK(world.proof_of(world.lease) == "LaunchQuiet");
  CHECK(world.performed<effect::SendSettle>().empty());
  CHECK(world.performed<effect::ClearExtents>().empty());
  CHECK(world.state.extents.held_by(world.worker).empty());
}
