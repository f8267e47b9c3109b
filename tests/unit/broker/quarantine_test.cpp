#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

/// A worker wrote to an extent after its fence.
struct OneQuarantine : LeasedWorld {
  OneQuarantine() {
    clock.advance(1s);
    touched.insert(extent);
    revoke(lease);
  }
  CallId release(ExtentId which) {
    return call(kOperator, wire::QuarantineRelease{.extent = which, .reason = kReason}, 7);
  }
  std::optional<events::OperatorAction> last_action() const {
    const auto actions = recorded<events::OperatorAction>();
    if (actions.empty() || actions.back().action != "quarantine_release") return std::nullopt;
    return actions.back();
  }
};

}  // namespace

TEST_CASE("quarantine: a quarantined extent is listed with lease, worker, time and reason") {
  OneQuarantine world;

  const auto quarantined = quarantine_views(world.state);

  REQUIRE(quarantined.size() == 1);
  CHECK(quarantined[0].extent == world.extent);
  CHECK(quarantined[0].lease == world.lease);
  CHECK(quarantined[0].worker == "w0");
  CHECK(quarantined[0].since_boottime_ns == world.clock.now().boottime_ns);
  CHECK(quarantined[0].size_bytes == 2 * kMiB);
  CHECK(quarantined[0].why.find("4096 bytes") != std::string::npos);
}

TEST_CASE("quarantine: an extent that is empty on release is freed, and the action is recorded") {
  OneQuarantine world;
  world.touched.clear();
  world.forget_effects();

  const CallId call = world.release(world.extent);

  CHECK(world.answer<wire::QuarantineReleased>(call).size_bytes == 2 * kMiB);
  CHECK(world.performed<effect::PunchExtents>().size() == 1);
  CHECK(world.state.extents.find(world.extent) == nullptr);
  CHECK(quarantine_views(world.state).empty());
  REQUIRE(world.last_action());
  CHECK(world.last_action()->action == "quarantine_release");
  CHECK(world.last_action()->object == "extent:" + std::to_string(world.extent.value));
  CHECK(world.last_action()->uid == 7);
  CHECK(world.last_action()->reason == kReason);
  CHECK(world.last_action()->done);
}

TEST_CASE("quarantine: memory that its worker still writes to stays quarantined") {
  OneQuarantine world;

  const CallId call = world.release(world.extent);

  CHECK(world.refusal(call) == Errc::StillWritable);
  CHECK(world.state.extents.find(world.extent)->state == ExtentState::Quarantined);
  REQUIRE(world.last_action());
  CHECK_FALSE(world.last_action()->done);
  const CallId again = world.release(world.extent);
  CHECK(world.refusal(again) == Errc::StillWritable);
}

TEST_CASE("quarantine: after its last worker exited, any extent can be released") {
  OneQuarantine world;
  world.post(WorkerExited{exit_of(world.worker)});

  const CallId call = world.release(world.extent);

  CHECK(world.answer<wire::QuarantineReleased>(call).size_bytes == 2 * kMiB);
  CHECK(world.objects.empty());
}

TEST_CASE("quarantine: a release succeeds if the last worker exits during the verification") {
  OneQuarantine world;
  world.before_verify = WorkerExited{exit_of(world.worker)};

  const CallId call = world.release(world.extent);

  CHECK(world.answer<wire::QuarantineReleased>(call).size_bytes == 2 * kMiB);
  CHECK(world.objects.empty());
}

TEST_CASE("quarantine: memory quarantined before a restart is released after its worker exits") {
  OneQuarantine before;
  before.touched.clear();
  World after(before, {});

  const CallId call =
      after.call(kOperator, wire::QuarantineRelease{.extent = before.extent, .reason = kReason});
  REQUIRE(after.refusal(call) == Errc::StillWritable);
  CHECK(after.answers.at(call).error().detail.find("end that worker") != std::string::npos);
  CHECK(after.state.extents.find(before.extent)->state == ExtentState::Quarantined);

  after.post(WorkerExited{exit_of(before.worker)});
  after.answer<wire::QuarantineReleased>(
      after.call(kOperator, wire::QuarantineRelease{.extent = before.extent, .reason = kReason}));
  CHECK(after.state.extents.find(before.extent) == nullptr);
}

TEST_CASE("quarantine: a worker that wrote after its fence loses its leases and gets no more") {
  LeasedWorld world;
  const LeaseId lease = world.lease;
  const LeaseId other = world.acquired("a");
  world.touched.insert(world.record(lease).extents.at(0));
  world.revoke(lease);

  const auto told = world.recorded<events::WorkerUntrusted>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].what == "extent");
  CHECK(told[0].lease == to_string(lease));
  CHECK(told[0].worker == "w0");
  CHECK(reason_of(world.record(other).lease) == RevokeReason::WorkerUntrusted);
  CHECK(world.record(other).is(LeaseState::Fenced));
  CHECK(worker_views(world.state, world.clock.now())[0].state == "lost");
  CHECK(world.refusal(world.acquire("a")) == Errc::NoModelLoaded);
  const CallId again = world.call(ConnectionId{77}, wire::WorkerAttach{.worker = "w0"});
  CHECK(world.refusal(again) == Errc::PermissionDenied);

  world.post(WorkerExited{exit_of(world.worker)});
  const CallId fresh = world.call(ConnectionId{78}, wire::WorkerAttach{.worker = "w0"});
  CHECK(world.answer<wire::WorkerAttached>(fresh).attachment != world.worker);
}

TEST_CASE("quarantine: a worker that wrote after its fence stays untrusted after a restart") {
  OneQuarantine before;
  World after(before, {});

  const Worker& worker = *after.state.workers.find(before.worker);
  CHECK(worker.reattach_until == TimePoint{});  // it may not resume
  const auto attach = [&](std::optional<AttachmentId> resume) {
    return after.call(ConnectionId{77}, wire::WorkerAttach{.worker = "w0", .resume = resume});
  };
  CHECK(after.refusal(attach(before.worker)) == Errc::PermissionDenied);
  CHECK(after.refusal(attach(std::nullopt)) == Errc::PermissionDenied);
  CHECK(after.refusal(after.acquire("a")) == Errc::NoModelLoaded);

  after.post(WorkerExited{exit_of(before.worker)});
  CHECK(after.answer<wire::WorkerAttached>(attach(std::nullopt)).attachment != before.worker);
}

TEST_CASE("quarantine: a lease with quarantined memory has no reuse clock") {
  OneQuarantine world;

  const auto view = lease_page(world.state, world.lease.slot, 1).items.at(0);

  CHECK(view.state == LeaseState::Fenced);
  CHECK(view.quarantined_extents == 1);
  CHECK(view.clocks.reuse_ns == -1);
}

TEST_CASE("quarantine: a release that is not on disk answers DiskFull") {
  OneQuarantine world;
  world.touched.clear();
  world.disk_full = true;
  CHECK(world.refusal(world.release(world.extent)) == Errc::DiskFull);
  CHECK(world.state.extents.find(world.extent) == nullptr);  // it is free, although the call fails
}

TEST_CASE("quarantine: releasing memory that is not quarantined names its state") {
  OneQuarantine world;
  world.caller_pid = 1001;
  world.attach_worker("w1", ConnectionId{11});
  const LeaseId live = world.acquired("a");

  CHECK(world.refusal(world.release(world.record(live).extents.at(0))) == Errc::IllegalTransition);
  CHECK(world.refusal(world.release(ExtentId{999})) == Errc::UnknownLease);
  const CallId region =
      world.call(kOperator, wire::QuarantineRelease{.region = RegionId{9}, .reason = kReason});
  CHECK(world.refusal(region) == Errc::UnknownLease);
}

TEST_CASE("status: it counts revoked leases, the age of the oldest and the stuck ones") {
  LeasedWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);

  world.clock.advance(1500ms);

  const auto early = status_view(world.state, world.clock.now());
  CHECK(early.leases_revoked == 1);
  CHECK(early.leases_stuck == 0);
  CHECK(early.oldest_revoked_ms == 1500);
  world.clock.advance(1500ms);
  CHECK(status_view(world.state, world.clock.now()).leases_stuck == 1);
}

TEST_CASE("leases: the view shows all times from grant to rebind") {
  ServingWorld world;
  world.admit_tenant("b");
  world.clock.advance(1s);
  const LeaseId old = world.acquired("a");
  const LeaseId fresh = world.acquired("a");
  const LeaseId foreign = world.acquired("b");
  world.clock.advance(1s);
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(old);
  world.clock.advance(1s);
  world.end_unit(world.worker);
  const auto rebind = [&](LeaseId to, const std::string& tenant) {
    const events::Rebind event{.tenant = tenant,
                               .request = {"r"},
                               .old_lease = old,
                               .new_lease = to,
                               .prompt_tokens = 7,
                               .emitted_tokens = 5,
                               .latency_ns = 99};
    world.post(WorkerReported{kWorkerSocket, {event, world.clock.now()}});
  };

  rebind(foreign, "b");
  const auto before = lease_page(world.state, old.slot, 1).items.at(0);
  world.clock.advance(1s);
  rebind(fresh, "a");

  const auto after = lease_page(world.state, old.slot, 1).items.at(0);
  const auto times = after.times;
  // A rebind reported for another tenant has no effect.
  CHECK(before.times.rebound_boottime_ns == 0);
  CHECK_FALSE(before.replaced_by);
  CHECK(after.replaced_by == fresh);  // although its acquire did not name `replaces`
  CHECK(world.warnings.size() == 1);
  const auto recorded = world.recorded<events::Rebind>();
  REQUIRE(recorded.size() == 1);
  CHECK(recorded[0].new_lease == fresh);
  CHECK(recorded[0].prompt_tokens == 7);
  CHECK(recorded[0].emitted_tokens == 5);
  CHECK(recorded[0].latency_ns == 2'000'000'000);  // the broker's, not the worker's
  CHECK(times.revoked_boottime_ns - times.granted_boottime_ns == 1'000'000'000);
  CHECK(times.fenced_boottime_ns - times.revoked_boottime_ns == 1'000'000'000);
  CHECK(times.rebound_boottime_ns - times.fenced_boottime_ns == 1'000'000'000);
}

TEST_CASE("operator actions: an action is journaled durably with the uid") {
  OneQuarantine world;
  world.touched.clear();
  world.forget_effects();
  world.release(world.extent);

  const auto written = world.performed<effect::Journal>();
  REQUIRE_FALSE(written.empty());
  CHECK(written.back().batch.durable);
  const auto* row = std::get_if<journal::OperatorActionRow>(&written.back().batch.rows.back());
  REQUIRE(row != nullptr);
  CHECK(row->action == "quarantine_release");
  CHECK(row->object == "extent:" + std::to_string(world.extent.value));
  CHECK(row->reason == kReason);
  CHECK(row->uid == 7);
  CHECK(row->done);
  CHECK(row->at_boottime_ns == world.clock.now().boottime_ns);
}

TEST_CASE("operator actions: a revocation is journaled after all its other effects") {
  LeasedWorld world;
  const LeaseId lease = world.lease;
  world.call(kOperator, wire::LeaseRevoke{.lease = lease}, 9);

  std::vector<effect::Journal> audits;
  for (const auto& each : world.performed<effect::Journal>()) {
    const bool action = std::holds_alternative<journal::OperatorActionRow>(each.batch.rows.front());
    CHECK(each.when_idle == action);
    CHECK(each.batch.synced_later == action);
    CHECK_FALSE(each.batch.durable);  // the broker's thread does not wait for the disk
    if (action) audits.push_back(each);
  }
  REQUIRE(audits.size() == 1);
  const auto& row = std::get<journal::OperatorActionRow>(audits[0].batch.rows[0]);
  CHECK(row.action == "revoke");
  CHECK(row.object == "lease:" + to_string(lease));
  CHECK(row.uid == 9);
}
