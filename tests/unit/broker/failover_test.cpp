// worker.replace: the tenants of a worker move to another one, with their memory.
#include <catch2/catch.hpp>
#include <random>

#include "broker/decide/lease/succession.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kNextSocket{11};
constexpr ConnectionId kThirdSocket{12};

/// Worker w1 serves the lease of tenant "a", and w2 can take over.
struct FailoverWorld : World {
  explicit FailoverWorld(const BrokerConfig& config = small_config()) : World(config) {
    admit_tenant("a");
    old = attach("w1", kWorkerSocket);
    next = attach("w2", kNextSocket);
    lease = answer<wire::LeaseAcquired>(acquire_on("w1", 16)).lease;
    extents = record(lease).extents;
    forget_effects();
  }
  AttachmentId attach(const std::string& name, ConnectionId connection,
                      const std::string& arithmetic = "f32",
                      std::uint64_t block_bytes = kTestBlockBytes) {
    const CallId attached = call(connection, wire::WorkerAttach{.worker = name});
    call(connection, wire::WorkerReady{.address = "/run/" + name,
                                       .model = "model",
                                       .arithmetic = arithmetic,
                                       .kv_block_size_bytes = block_bytes,
                                       .kv_identity = "kv " + arithmetic});
    return std::get<WorkerDescriptors>(answers.at(attached)->descriptors).worker;
  }
  CallId acquire_on(const std::string& worker, std::uint32_t blocks = 8,
                    const std::string& tenant = "a") {
    return call(kHolder,
                wire::LeaseAcquire{.tenant = {tenant}, .blocks = blocks, .worker = worker});
  }
  CallId replace_worker(const std::string& worker = "w1", const std::string& by = "w2",
                        bool any_arithmetic = false, std::int64_t grace_ms = 30'000) {
    return call(
        kOperator,
        wire::WorkerReplace{
            .worker = worker, .by = by, .grace_ms = grace_ms, .any_arithmetic = any_arithmetic});
  }
  CallId fail_over(LeaseId from, bool any_arithmetic = false) {
    return call(kHolder, wire::LeaseReplace{.lease = from,
                                            .mode = wire::RebindMode::Failover,
                                            .any_arithmetic = any_arithmetic});
  }
  RevokeReason reason(LeaseId of) { return reason_of(record(of).lease); }
  bool is_marked() const { return state.workers.find(old)->replacement.has_value(); }
  std::vector<std::string> states() const {
    std::vector<std::string> seen;
    for (const auto& event : recorded<events::WorkerReplacement>()) seen.push_back(event.state);
    return seen;
  }
  /// Of the live leases on a worker.
  std::size_t live_on(AttachmentId worker) const {
    const auto open = state.leases.leases_on(worker);
    return static_cast<std::size_t>(std::ranges::count_if(
        open, [this](LeaseId id) { return state.leases.find_open(id)->is(LeaseState::Live); }));
  }

  AttachmentId old, next;
  LeaseId lease;
  std::vector<ExtentId> extents;
};

}  // namespace

TEST_CASE("failover: the lease moves with its memory, which is neither scrubbed nor copied") {
  FailoverWorld world;
  world.replace_worker();
  const auto notices = world.performed<effect::NotifyDraining>();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].draining.lease == world.lease);
  CHECK(notices[0].draining.successor == "w2");
  CHECK(world.record(world.lease).drain_deadline == TimePoint{});

  const auto moved = world.answer<wire::LeaseAcquired>(world.fail_over(world.lease));

  CHECK(moved.worker == "w2");
  CHECK(moved.blocks == 16);
  CHECK(moved.adopted_blocks == 16);
  CHECK(world.record(moved.lease).adopted_from == world.lease);
  for (const ExtentId extent : world.extents) {
    CHECK(world.state.extents.find(extent)->lease == moved.lease);
    CHECK(world.objects.contains(extent));
  }
  CHECK(world.performed<effect::PunchExtents>().empty());
  CHECK(world.performed<effect::NotifyHolder>().empty());
  CHECK(world.reason(world.lease) == RevokeReason::WorkerReplaced);
  CHECK(world.states() == std::vector<std::string>{"begun", "done"});
  CHECK(world.recorded<events::WorkerReplacement>()[1].leases_moved == 1);
}

TEST_CASE("failover: the new worker has mapped its lease before the old one ends") {
  FailoverWorld world;
  world.replace_worker();
  world.workers_answer = false;
  const CallId call = world.fail_over(world.lease);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  REQUIRE(world.grants.size() == 1);
  CHECK(world.grants[0].grant.extents.size() == 1);
  CHECK_FALSE(world.grants[0].grant.adopted_from);

  world.answer_grant();
  CHECK(world.record(world.lease).is(LeaseState::Fenced));
  CHECK(world.grants.empty());  // the old worker maps the memory
  CHECK_FALSE(world.answers.contains(call));

  world.answer_unmap();
  REQUIRE(world.grants.size() == 1);
  CHECK(world.grants[0].grant.extents == world.extents);
  CHECK(world.grants[0].grant.adopted_from == world.lease);
  CHECK_FALSE(world.answers.contains(call));
  world.answer_grant();
  CHECK(world.answer<wire::LeaseAcquired>(call).adopted_blocks == 16);
  // The first extent is beside what the quota covers.
  REQUIRE(world.reclaims.size() == 1);
}

TEST_CASE("failover: a lease that fills pool and quota moves with one extent to spare") {
  FailoverWorld world;
  world.admit_tenant("a", 16);
  while (world.state.extents.free_extents() > 1) {
    world.admit_tenant("b");
    world.answer<wire::LeaseAcquired>(world.acquire_on("w1", 8, "b"));
  }
  world.replace_worker();
  const auto moved = world.answer<wire::LeaseAcquired>(world.fail_over(world.lease));
  CHECK(world.state.leases.index().charged({"a"}) == 16);
  CHECK(moved.adopted_blocks == 16);
}

TEST_CASE("failover: the pair counts once, and the move costs one rebind") {
  FailoverWorld world;
  world.call(kOperator,
             wire::TenantAdmit{
                 .tenant = {"a"}, .max_blocks = 16, .rebinds_per_minute = 1, .rebind_burst = 1});
  world.replace_worker();
  const auto moved = world.answer<wire::LeaseAcquired>(world.fail_over(world.lease));
  CHECK(world.state.leases.index().charged({"a"}) == 16);
  world.call(kHolder, wire::LeaseRelease{.lease = moved.lease});
  world.acquired("a");  // new work
}

TEST_CASE(
    "failover: new leases are granted on the new worker, also for callers that name the old") {
  FailoverWorld world;
  world.replace_worker();
  CHECK(world.answer<wire::LeaseAcquired>(world.acquire_on("w1")).worker == "w2");
  CHECK(world.answer<wire::LeaseAcquired>(world.acquire("a")).worker == "w2");
  // A holder that knows nothing of failover stays until its lease ends.
  const CallId moved = world.call(kHolder, wire::LeaseReplace{.lease = world.lease});
  CHECK(world.refusal(moved) == Errc::Draining);
  world.call(kHolder, wire::LeaseRelease{.lease = world.lease});
  CHECK(world.recorded<events::WorkerReplacement>().back().leases_ended == 1);
}

TEST_CASE("failover: at the end of the grace, the rest is revoked, with a notice") {
  FailoverWorld world;
  world.replace_worker("w1", "w2", false, 500);
  world.advance(499ms);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  world.advance(1ms);
  CHECK(world.reason(world.lease) == RevokeReason::WorkerReplaced);
  CHECK(world.performed<effect::NotifyHolder>().size() == 1);
  CHECK(world.states().back() == "done");
}

TEST_CASE("failover: repeated, it notifies the holders again; another successor is refused") {
  FailoverWorld world;
  world.attach("w3", kThirdSocket);
  world.replace_worker();
  CHECK(world.answer<wire::LeasesTouched>(world.replace_worker()).leases ==
        std::vector{world.lease});
  CHECK(world.performed<effect::NotifyDraining>().size() == 2);
  CHECK(world.refusal(world.replace_worker("w1", "w3")) == Errc::IllegalTransition);
  CHECK(world.refusal(world.replace_worker("w2", "w3")) == Errc::IllegalTransition);
  CHECK(world.refusal(world.replace_worker("w3", "w1")) == Errc::Draining);
  CHECK(world.states() == std::vector<std::string>{"begun"});
}

TEST_CASE("failover: a worker that is not the same is refused") {
  FailoverWorld world;
  world.attach("int", kThirdSocket, "int8");
  CHECK(world.refusal(world.replace_worker("w1", "w1")) == Errc::BadRequest);
  CHECK(world.refusal(world.replace_worker("w1", "w9")) == Errc::UnknownWorker);
  const CallId other = world.replace_worker("w1", "int");
  CHECK(world.refusal(other) == Errc::BadRequest);
  CHECK_THAT(world.error_of(other).detail,
             Catch::Contains("f32") && Catch::Contains("int8") && Catch::Contains("worker int in"));
  CHECK_FALSE(world.is_marked());
  world.attach("big", ConnectionId{13}, "f32", 2 * kTestBlockBytes);
  CHECK(world.refusal(world.replace_worker("w1", "big")) == Errc::BadRequest);
  world.call(kOperator, wire::LeaseDrain{.worker = "w2"});
  CHECK(world.refusal(world.replace_worker()) == Errc::Draining);
}

TEST_CASE("failover: another arithmetic takes no text that does not allow it, and no memory") {
  FailoverWorld world;
  world.attach("int", kThirdSocket, "int8");
  world.answer<wire::LeasesTouched>(world.replace_worker("w1", "int", true));
  CHECK(world.refusal(world.fail_over(world.lease)) == Errc::IllegalTransition);
  CHECK(world.record(world.lease).is(LeaseState::Live));

  const auto moved = world.answer<wire::LeaseAcquired>(world.fail_over(world.lease, true));
  CHECK(moved.arithmetic == "int8");
  CHECK(moved.adopted_blocks == 0);
  CHECK(moved.blocks == 16);
  CHECK(world.reason(world.lease) == RevokeReason::WorkerReplaced);
  for (const ExtentId extent : world.extents) CHECK_FALSE(world.objects.contains(extent));
}

TEST_CASE("failover: a worker that is not being replaced keeps its leases") {
  FailoverWorld world;
  CHECK(world.refusal(world.fail_over(world.lease)) == Errc::IllegalTransition);
  world.replace_worker();
  world.call(kOperator, wire::LeaseUndrain{.worker = "w1"});
  CHECK(world.states() == std::vector<std::string>{"begun", "dropped"});
  CHECK(world.refusal(world.fail_over(world.lease)) == Errc::IllegalTransition);
  CHECK(world.record(world.lease).is(LeaseState::Live));
}

TEST_CASE("failover: when the new worker dies first, the old one serves as before") {
  FailoverWorld world;
  world.replace_worker();
  world.workers_answer = false;
  const CallId call = world.fail_over(world.lease);
  world.post(ConnectionClosed{kNextSocket});
  world.post(WorkerExited{exit_of(world.next)});

  CHECK(world.refusal(call) == Errc::LeaseRevoked);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  CHECK_FALSE(world.record(world.lease).replaced_by);
  CHECK_FALSE(world.is_marked());
  CHECK(world.states() == std::vector<std::string>{"begun", "dropped"});
  world.workers_answer = true;
  CHECK(world.answer<wire::LeaseAcquired>(world.acquire_on("w1")).worker == "w1");
  world.advance(1min);
}

TEST_CASE("failover: when the new worker dies in the middle, the old one gets the memory back") {
  FailoverWorld world;
  world.replace_worker();
  world.workers_answer = false;
  world.fail_over(world.lease);
  world.answer_grant();
  world.post(ConnectionClosed{kNextSocket});
  world.post(WorkerExited{exit_of(world.next)});
  world.answer_unmap();
  REQUIRE(world.record(world.lease).is(LeaseState::Fenced));
  world.workers_answer = true;
  const auto again = world.answer<wire::LeaseAcquired>(
      world.call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .replaces = world.lease}));
  CHECK(again.worker == "w1");
  CHECK(again.adopted_blocks == 16);
}

TEST_CASE("failover: when the old worker dies in the middle, its exit frees the memory to move") {
  FailoverWorld world;
  world.replace_worker();
  const bool before_the_grant = GENERATE(true, false);
  world.workers_answer = false;
  const CallId call = world.fail_over(world.lease);
  if (!before_the_grant) world.answer_grant();
  world.post(ConnectionClosed{kWorkerSocket});
  if (before_the_grant) world.answer_grant();
  CHECK(world.grants.empty());  // its process may still write
  world.post(WorkerExited{exit_of(world.old)});
  REQUIRE(world.grants.size() == 1);
  CHECK(world.grants[0].grant.adopted_from == world.lease);
  world.answer_grant();
  CHECK(world.answer<wire::LeaseAcquired>(call).adopted_blocks == 16);
}

TEST_CASE("failover: an old worker that never unmaps is killed, and the memory moves") {
  FailoverWorld world;
  world.replace_worker();
  world.workers_answer = false;
  const CallId call = world.fail_over(world.lease);
  world.answer_grant();
  world.advance(6 * world.state.config.timeouts.fence - 1ms);
  REQUIRE(world.performed<effect::KillWorker>().size() == 1);
  world.post(WorkerExited{exit_of(world.old)});
  world.answer_grant();
  CHECK(world.answer<wire::LeaseAcquired>(call).adopted_blocks == 16);
}

TEST_CASE("failover: a holder that goes in the middle leaves nothing behind") {
  FailoverWorld world;
  world.replace_worker();
  world.workers_answer = false;
  world.fail_over(world.lease);
  if (GENERATE(true, false)) world.answer_grant();
  world.workers_answer = true;
  world.post(ConnectionClosed{kHolder});
  while (!world.unmaps.empty()) world.answer_unmap();
  while (!world.grants.empty()) world.answer_grant();
  while (!world.unmaps.empty()) world.answer_unmap();
  CHECK(world.live_on(world.old) + world.live_on(world.next) == 0);
  world.advance(1min);
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("failover: a new worker that cannot map the memory costs the lease, and says so") {
  FailoverWorld world;
  world.replace_worker();
  world.workers_answer = false;
  const CallId call = world.fail_over(world.lease);
  SECTION("at first: the old lease goes on") {
    world.answer_grant(false);
    CHECK(world.refusal(call) == Errc::OutOfMemory);
    CHECK(world.record(world.lease).is(LeaseState::Live));
  }
  SECTION("later: the caller acquires again") {
    world.answer_grant();
    world.answer_unmap();
    world.answer_grant(false);
    CHECK(world.refusal(call) == Errc::OutOfMemory);
  }
}

TEST_CASE("failover: the broker's record of the rebind says failover, from the flip on") {
  FailoverWorld world;
  world.replace_worker();
  const LeaseId moved = world.answer<wire::LeaseAcquired>(world.fail_over(world.lease)).lease;
  world.advance(3ms);
  const events::Rebind rebind{
      .tenant = "a", .request = {"r"}, .old_lease = world.lease, .new_lease = moved};
  world.post(WorkerReported{kNextSocket, {.event = rebind, .at = world.clock.now()}});
  const auto recorded = world.recorded<events::Rebind>();
  REQUIRE(recorded.size() == 1);
  CHECK(recorded[0].mode == wire::RebindMode::Failover);
  CHECK(recorded[0].latency_ns == 3'000'000);
}

TEST_CASE("failover: a broker restart drops the mark, and the old worker serves") {
  FailoverWorld world;
  world.replace_worker();
  World after(world, {});
  CHECK_FALSE(after.state.workers.find(world.old)->replacement.has_value());
  CHECK(after.record(world.lease).is(LeaseState::Live));
}

TEST_CASE(
    "failover: in any order of answers and deaths, a holder keeps one live lease or hears why") {
  const auto seed = GENERATE(range(1u, 65u));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  FailoverWorld world;
  const auto pick = [&random](std::uint64_t n) { return random() % n; };
  std::vector<LeaseId> held{world.lease};
  for (int i = 0; i < 3; ++i)
    held.push_back(world.answer<wire::LeaseAcquired>(world.acquire_on("w1")).lease);
  const std::uint64_t charged = world.state.leases.index().charged({"a"});
  world.replace_worker();
  world.workers_answer = false;
  std::map<LeaseId, CallId> moves;
  for (int i = 0; i < 60; ++i) {
    const LeaseId from = held[pick(held.size())];
    const std::uint64_t what = pick(8);
    if (what < 2 && !moves.contains(from)) moves[from] = world.fail_over(from);
    if (what >= 2 && what < 5 && !world.grants.empty()) world.answer_grant(pick(12) != 0);
    if ((what == 5 || what == 6) && !world.unmaps.empty()) world.answer_unmap();
    if (what == 7 && pick(20) == 0)
      world.post(ConnectionClosed{pick(2) == 0 ? kWorkerSocket : kNextSocket});
    CHECK(world.state.leases.index().charged({"a"}) <= charged);
    for (const auto& [old, call] : moves) {
      const LeaseRecord& before = world.record(old);
      if (before.id() != old || !before.is(LeaseState::Revoked)) continue;
      // Nothing but a worker's end takes the old lease before the new one is mapped.
      if (reason_of(before.lease) != RevokeReason::WorkerReplaced || !before.replaced_by) continue;
      CHECK(world.record(*before.replaced_by).sent_to_worker);
    }
  }
  world.workers_answer = true;
  for (int i = 0; i < 50; ++i) {
    if (!world.grants.empty()) world.answer_grant();
    if (!world.unmaps.empty()) world.answer_unmap();
  }
  world.post(WorkerExited{exit_of(world.old)});
  for (int i = 0; i < 50 && !world.grants.empty(); ++i) world.answer_grant();
  for (const auto& [old, call] : moves) {
    const auto answered = world.answers.find(call);
    REQUIRE(answered != world.answers.end());
    if (!answered->second) continue;
    const auto& moved = std::get<wire::LeaseAcquired>(answered->second->body);
    CHECK(moved.worker == "w2");
  }
  world.post(ConnectionClosed{kHolder});
  world.post(WorkerExited{exit_of(world.next)});
  world.advance(1min);
  CHECK(world.state.extents.records().empty());
}
