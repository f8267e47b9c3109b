// Decisions after a broker restart with the table kept.
#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kOldSocket{10};
constexpr ConnectionId kNewSocket{20};
constexpr ConnectionId kNewHolder{21};
constexpr std::uint32_t kUser = 1000;

/// One worker, one lease of two extents, and a broker that has just restarted.
struct Restarted : World {
  AttachmentId worker = attach_worker("w0", kOldSocket);
  wire::LeaseAcquired lease;

  Restarted() {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .max_blocks = 1024, .ttl_ms = 60'000});
    lease = answer<wire::LeaseAcquired>(
        call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 16}, kUser));
    restart();
    forget_effects();
  }

  CallId resume(AttachmentId attachment) {
    return call(kNewSocket, wire::WorkerAttach{.worker = "w0", .resume = attachment});
  }
  CallId redeliver(std::vector<ExtentId> extents) {
    return call(kNewSocket, wire::LeaseRedeliver{.lease = lease.lease, .extents = extents});
  }
  CallId ready() {
    return call(kNewSocket,
                wire::WorkerReady{.address = "/run/w0", .kv_block_size_bytes = kTestBlockBytes});
  }
  CallId hold(const std::string& token, std::uint32_t uid = kUser,
              ConnectionId connection = kNewHolder) {
    return call(connection, wire::LeaseHold{.lease = lease.lease, .token = token}, uid);
  }
  std::vector<ExtentId> extents() { return record(lease.lease).extents; }
  bool is_live() { return record(lease.lease).is(LeaseState::Live); }
};

}  // namespace

TEST_CASE("reattach: a resumed worker keeps its identity and its leases") {
  Restarted world;
  const TokenKey key = world.state.workers.find(world.worker)->token_key;

  const auto attached = world.answer<wire::WorkerAttached>(world.resume(world.worker));
  world.answer<wire::Empty>(world.redeliver(world.extents()));
  world.answer<wire::ExtentShape>(world.ready());

  CHECK(attached.resumed);
  CHECK(attached.attachment == world.worker);
  CHECK(attached.token_key == to_hex(key));
  CHECK(world.is_live());
  CHECK(world.performed<effect::StoreWords>().empty());
  CHECK(world.performed<effect::PunchExtents>().empty());
  world.advance(10s);
  CHECK(world.is_live());
  CHECK(world.acquired("a") != world.lease.lease);  // it serves again
}

TEST_CASE("reattach: a worker is lost only when its grace ends") {
  Restarted world;
  world.advance(4999ms);
  CHECK(world.is_live());

  world.advance(1ms);

  CHECK(reason_of(world.record(world.lease.lease).lease) == RevokeReason::WorkerGone);
  CHECK(world.refusal(world.resume(world.worker)) == Errc::BrokerLost);
  CHECK(world.performed<effect::KillWorker>().empty());
  world.advance(10s);  // its segment is quiet but it never unmaps
  CHECK(world.performed<effect::KillWorker>().size() == 1);
}

TEST_CASE("reattach: another process, user or name cannot resume") {
  Restarted world;
  const auto resume_as = [&](const wire::WorkerAttach& attach, std::uint32_t uid) {
    return world.refusal(world.call(kNewSocket, attach, uid));
  };
  const wire::WorkerAttach right{.worker = "w0", .resume = world.worker};

  CHECK(resume_as(right, 7) == Errc::BrokerLost);
  CHECK(resume_as({.worker = "w1", .resume = world.worker}, 0) == Errc::BrokerLost);
  CHECK(resume_as({.worker = "w0", .resume = AttachmentId{99}}, 0) == Errc::BrokerLost);
  world.state.workers.find(world.worker)->pid = 1;
  CHECK(resume_as(right, 0) == Errc::BrokerLost);
  CHECK(world.is_live());
}

TEST_CASE("reattach: an exit within the grace is ProcessExit") {
  Restarted world;
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.proof_of(world.lease.lease) == "ProcessExit");
  CHECK(world.state.extents.records().empty());
  world.advance(10s);
  CHECK(world.state.workers.find(world.worker)->state == WorkerState::Gone);
  CHECK_FALSE(next_deadline(world.state));
}

TEST_CASE("reattach: a lease that the worker does not redeliver is released and fenced") {
  Restarted world;
  world.resume(world.worker);

  world.ready();

  CHECK(reason_of(world.record(world.lease.lease).lease) == RevokeReason::Released);
  CHECK(world.proof_of(world.lease.lease) == "LaunchQuiet");
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("reattach: an extent that is not redelivered is freed, the lease stays") {
  Restarted world;
  world.resume(world.worker);
  const ExtentId kept = world.extents().front();
  world.redeliver({kept});

  world.ready();

  CHECK(world.is_live());
  CHECK(world.extents() == std::vector{kept});
  CHECK(world.state.extents.records().size() == 1);
  CHECK(world.record(world.lease.lease).charged_blocks == 8);
}

TEST_CASE("reattach: only the lease's own worker redelivers, and only after a resume") {
  Restarted world;
  CHECK(world.refusal(world.redeliver(world.extents())) == Errc::PermissionDenied);
  world.resume(world.worker);
  CHECK(world.refusal(world.redeliver({ExtentId{77}})) == Errc::UnknownLease);
  const CallId other = world.call(
      kNewSocket, wire::LeaseRedeliver{.lease = {.slot = 9, .generation = 4}, .extents = {}});
  CHECK(world.refusal(other) == Errc::UnknownLease);
  world.redeliver(world.extents());
  world.ready();
  CHECK(world.refusal(world.redeliver(world.extents())) == Errc::PermissionDenied);
}

TEST_CASE("reattach: memory fenced before or during redelivery is punched before it is verified") {
  Restarted world;
  const bool during = GENERATE(false, true);
  world.workers_answer = false;
  if (during) world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease.lease);
  CHECK(world.record(world.lease.lease).is(LeaseState::Fenced) == !during);
  CHECK(world.unmaps.empty());  // no worker can unmap yet
  world.resume(world.worker);
  if (during) world.end_unit(world.worker);
  REQUIRE(world.record(world.lease.lease).is(LeaseState::Fenced));
  CHECK(world.unmaps.empty());  // sent later, after the punch
  world.redeliver(world.extents());
  world.forget_effects();

  world.ready();

  CHECK(world.performed<effect::PunchExtents>().size() == 1);
  REQUIRE(world.unmaps.size() == 1);
  world.answer_unmap();
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("reattach: a grant of the old broker that is prefaulted late does not count as a write") {
  Restarted world;
  SECTION("the worker exits before it resumed") {
    world.workers_answer = false;
    world.revoke(world.lease.lease);
    REQUIRE(world.record(world.lease.lease).is(LeaseState::Fenced));
    world.forget_effects();
    world.post(WorkerExited{exit_of(world.worker)});
    CHECK(world.performed<effect::PunchExtents>().size() == 1);
  }
  SECTION("once it has resumed all is mapped, so a later page is a write") {
    world.resume(world.worker);
    world.redeliver(world.extents());
    world.ready();
    world.forget_effects();
    world.revoke(world.lease.lease);
    CHECK(world.performed<effect::PunchExtents>().size() == 1);  // at the fence, before the unmap
  }
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("reattach: a revocation in the grace starts the fence timeout after the resume") {
  Restarted world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease.lease);
  world.advance(4s);
  CHECK(world.performed<effect::KillWorker>().empty());
  world.resume(world.worker);
  world.advance(1999ms);
  CHECK(world.performed<effect::KillWorker>().empty());
  world.advance(1ms);
  CHECK(world.performed<effect::KillWorker>().size() == 1);
}

TEST_CASE("hold: a caller with the token and the user id becomes the holder again") {
  Restarted world;
  const auto held = world.answer<wire::LeaseRenewed>(world.hold(world.lease.token));
  CHECK(held.deadline_boottime_ns == world.lease.deadline_boottime_ns);
  world.clock.advance(1s);
  const CallId renewed =
      world.call(kNewHolder, wire::LeaseRenew{.lease = world.lease.lease}, kUser);
  CHECK(world.answer<wire::LeaseRenewed>(renewed).deadline_boottime_ns > held.deadline_boottime_ns);

  world.post(ConnectionClosed{kNewHolder});

  CHECK(reason_of(world.record(world.lease.lease).lease) == RevokeReason::HolderGone);
}

TEST_CASE("hold: resizing returns a retryable error until the worker has resumed") {
  Restarted world;
  world.answer<wire::LeaseRenewed>(world.hold(world.lease.token));
  const auto grow = [&] {
    return world.call(kNewHolder, wire::LeaseGrow{.lease = world.lease.lease, .extents = 1}, kUser);
  };
  const auto shrink = [&] {
    return world.call(kNewHolder, wire::LeaseShrink{.lease = world.lease.lease, .extents = 1},
                      kUser);
  };
  CHECK(world.refusal(grow()) == Errc::BrokerLost);
  CHECK(world.refusal(shrink()) == Errc::BrokerLost);
  world.resume(world.worker);
  CHECK(world.refusal(grow()) == Errc::BrokerLost);
  CHECK(world.extents().size() == 2);

  world.redeliver(world.extents());
  world.ready();

  CHECK(world.answer<wire::LeaseResized>(grow()).extents == 3);
}

TEST_CASE("hold: a wrong token, another user and a second holder are refused") {
  Restarted world;
  CHECK(world.refusal(world.hold("v1:0.1:a:00")) == Errc::BadToken);
  CHECK(world.refusal(world.hold(world.lease.token, kUser + 1)) == Errc::PermissionDenied);
  world.answer<wire::LeaseRenewed>(world.hold(world.lease.token));
  CHECK(world.refusal(world.hold(world.lease.token, kUser, ConnectionId{22})) ==
        Errc::PermissionDenied);
  world.revoke(world.lease.lease);
  CHECK(world.refusal(world.hold(world.lease.token)) == Errc::LeaseFenced);
}

TEST_CASE("hold: an unclaimed lease runs to its deadline") {
  Restarted world;
  world.resume(world.worker);
  world.redeliver(world.extents());
  world.ready();
  world.advance(TimePoint{world.lease.deadline_boottime_ns} - world.clock.now());
  CHECK(reason_of(world.record(world.lease.lease).lease) == RevokeReason::TtlExpired);
}

TEST_CASE("reattach: an earlier holder's exit ends only its unclaimed leases") {
  Restarted world;
  const ProcessIdentity earlier = world.record(world.lease.lease).holder_process;

  SECTION("not claimed") {
    world.post(PreviousHolderExited{{earlier.pid, earlier.start_ticks + 1}});
    CHECK(world.is_live());  // another process with the same pid
    world.post(PreviousHolderExited{earlier});
    CHECK(reason_of(world.record(world.lease.lease).lease) == RevokeReason::HolderGone);
  }
  SECTION("claimed") {
    world.hold(world.lease.token);
    world.post(PreviousHolderExited{earlier});
    CHECK(world.is_live());
  }
}

TEST_CASE(
    "recovery: a grant journaled with the fence of its slot's earlier lease replaces its word") {
  ServingWorld before;
  const LeaseId lease = before.acquired("a", 16);
  const LeaseId next{lease.slot, lease.generation + 1};
  journal::LeaseRow row = before.journal.leases.extract(lease).mapped();
  row.id = next;
  before.journal.leases[next] = row;
  std::erase_if(before.journal.extents,
                [&](const auto& entry) { return entry.second.lease == lease; });

  World after(before, {});

  CHECK(after.table.word(next.slot) ==
        LeaseWord::make(next.generation, LeaseState::Fenced, RevokeReason::Released));
  CHECK(after.state.leases.find_open(next) == nullptr);
}

TEST_CASE("recovery: weights over a lower capacity are kept; no others fit until they are gone") {
  constexpr ConnectionId kOther{11};
  World before;
  const AttachmentId worker = before.attach_worker("w0", kWorkerSocket);
  const wire::WeightsOpen open{.model = "m", .file_inode = 1, .size_bytes = 40 * kMiB};
  const auto opened = before.answer<wire::WeightsOpened>(before.call(kWorkerSocket, open));
  before.call(kWorkerSocket, wire::WeightsPublish{.region = opened.region});
  BrokerConfig lower = small_config();
  lower.weights_capacity_bytes = 16 * kMiB;

  World after(before, {.regions = {opened.region}}, lower);

  CHECK(after.record(opened.lease).is(LeaseState::Live));
  CHECK(after.state.weights.excess_bytes() == 24 * kMiB);
  CHECK(after.state.weights.free_bytes() == 0);
  after.attach_worker("w1", kOther);
  const wire::WeightsOpen other{.model = "n", .file_inode = 2, .size_bytes = 8 * kMiB};
  CHECK(after.refusal(after.call(kOther, other)) == Errc::PoolExhausted);
  after.post(WorkerExited{exit_of(worker)});
  after.answer<wire::WeightsOpened>(after.call(kOther, other));
  CHECK(after.state.weights.excess_bytes() == 0);
  CHECK(after.state.weights.free_bytes() == 8 * kMiB);
}
