// lease.replace: a second lease of a holder while its first one is live.
#include <catch2/catch.hpp>
#include <random>

#include "broker/decide/lease/succession.hpp"
#include "broker/server/views/tenant_views.hpp"
#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

struct ReplaceWorld : LeasedWorld {
  explicit ReplaceWorld(const BrokerConfig& config = small_config()) : LeasedWorld(config) {}

  CallId replace(LeaseId old, wire::RebindMode mode = wire::RebindMode::Preemptive,
                 ConnectionId holder = kHolder) {
    return call(holder, wire::LeaseReplace{.lease = old, .mode = mode});
  }
  LeaseId replaced(LeaseId old) { return answer<wire::LeaseAcquired>(replace(old)).lease; }
  void drained(LeaseId old) { call(kWorkerSocket, wire::LeaseDrained{.lease = old}); }
};

}  // namespace

TEST_CASE("replace: the new lease is granted while the old one lives, with the same size and TTL") {
  ReplaceWorld world;
  const auto fresh = world.answer<wire::LeaseAcquired>(world.replace(world.lease));

  CHECK(fresh.worker == "w0");
  CHECK(fresh.blocks == world.record(world.lease).charged_blocks);
  CHECK(world.record(fresh.lease).ttl == world.record(world.lease).ttl);
  CHECK(world.record(fresh.lease).replaces == world.lease);
  CHECK(world.record(world.lease).replaced_by == fresh.lease);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  CHECK(world.record(world.lease).drain_deadline == world.clock.now() + kReplaceGrace);
}

TEST_CASE("replace: the steps of a move do not grow with the memory of the lease") {
  std::vector<std::size_t> steps;
  for (const std::uint32_t extents : {1u, 7u}) {
    ReplaceWorld world;
    world.admit_tenant("b");
    const LeaseId old = world.acquired("b", 8 * extents);
    world.forget_effects();
    const LeaseId fresh = world.replaced(old);
    CHECK(world.record(fresh).extents.size() == extents);
    CHECK(world.performed<effect::SendGrant>().size() == 1);
    // Besides the event that each extent has, which is a line in memory.
    steps.push_back(world.effects.size() - world.performed<effect::AppendEvent>().size());
  }
  CHECK(steps[0] == steps[1]);
}

TEST_CASE("replace: the old lease ends as released once no request is left under it") {
  ReplaceWorld world;
  const LeaseId fresh = world.replaced(world.lease);
  world.drained(world.lease);
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::Released);
  CHECK(world.record(world.lease).is(LeaseState::Fenced));
  CHECK(world.record(fresh).is(LeaseState::Live));
}

TEST_CASE("replace: a holder that keeps the old lease loses it after the grace") {
  ReplaceWorld world;
  const LeaseId fresh = world.replaced(world.lease);
  world.advance(kReplaceGrace - 1ms);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  world.advance(1ms);
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::DrainDeadline);
  CHECK(world.record(fresh).is(LeaseState::Live));
}

TEST_CASE("replace: the earlier deadline of an operator's drain stays") {
  ReplaceWorld world;
  world.call(kOperator, wire::LeaseDrain{.lease = world.lease, .grace_ms = 300});
  const TimePoint until = world.clock.now() + 300ms;
  REQUIRE(world.performed<effect::NotifyDraining>().size() == 1);
  CHECK(world.performed<effect::NotifyDraining>()[0].draining.lease == world.lease);
  world.answer<wire::LeaseAcquired>(world.replace(world.lease, wire::RebindMode::Checkpoint));
  CHECK(world.record(world.lease).drain_deadline == until);
}

TEST_CASE("replace: the pair counts once against the quota, and other leases count beside it") {
  ReplaceWorld world;
  world.admit_tenant("a", 16);  // the lease holds 8
  const LeaseId fresh = world.replaced(world.lease);
  CHECK(world.state.leases.index().charged({"a"}) == 8);
  const LeaseId other = world.acquired("a");
  CHECK(world.refusal(world.acquire("a")) == Errc::QuotaBlocks);

  // Without the new lease the old one counts again, and gets no second replacement.
  world.call(kHolder, wire::LeaseRelease{.lease = fresh});
  CHECK(world.state.leases.index().charged({"a"}) == 16);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  CHECK(world.refusal(world.replace(world.lease)) == Errc::IllegalTransition);
  CHECK(world.record(other).is(LeaseState::Live));
}

TEST_CASE("replace: a pair that was revoked together is replaced as one") {
  ReplaceWorld world;
  world.admit_tenant("a", 8);
  const LeaseId fresh = world.replaced(world.lease);
  world.begin_unit(world.worker, Touches::TenantMemory);  // so that no lease is fenced
  world.call(kOperator, wire::LeaseRevoke{.tenant = TenantId{"a"}});
  REQUIRE(world.record(world.lease).is(LeaseState::Revoked));
  REQUIRE(world.record(fresh).is(LeaseState::Revoked));

  const bool names_first = GENERATE(false, true);
  const LeaseId named = names_first ? world.lease : fresh;
  const CallId next =
      world.call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .replaces = named});
  const LeaseId third = world.answer<wire::LeaseAcquired>(next).lease;
  CHECK(world.record(third).replaces == fresh);
  CHECK(world.refusal(world.call(
            kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .replaces = named})) ==
        Errc::QuotaBlocks);
}

TEST_CASE("replace: a tenant's list counts a pair once") {
  ReplaceWorld world;
  world.replaced(world.lease);
  CHECK(tenant_views(world.state, std::nullopt, 1, world.clock.now()).at(0).blocks_held == 8);
}

TEST_CASE("replace: a lease that fills the quota is replaced") {
  ReplaceWorld world;
  world.admit_tenant("a", 8);
  const LeaseId fresh = world.replaced(world.lease);
  CHECK(world.state.leases.index().charged({"a"}) == 8);
  // The old one may not grow beyond the quota beside its replacement.
  CHECK(world.refusal(world.call(kHolder, wire::LeaseGrow{.lease = world.lease})) ==
        Errc::QuotaBlocks);
  CHECK(world.refusal(world.call(kHolder, wire::LeaseGrow{.lease = fresh})) == Errc::QuotaBlocks);
}

TEST_CASE("replace: the new lease of a pair may grow up to the quota") {
  ReplaceWorld world;
  world.admit_tenant("a", 16);
  const LeaseId fresh = world.replaced(world.lease);
  const auto grown =
      world.answer<wire::LeaseResized>(world.call(kHolder, wire::LeaseGrow{.lease = fresh}));
  CHECK(grown.blocks == 16);
}

TEST_CASE("replace: both leases need memory, which no other tenant gives") {
  ReplaceWorld world;
  while (world.state.extents.free_extents() > 0) world.acquired("a");
  const CallId refused = world.replace(world.lease);
  CHECK(world.refusal(refused) == Errc::PoolExhausted);
  CHECK_FALSE(world.record(world.lease).replaced_by);
  CHECK_FALSE(world.record(world.lease).charged_to_replacement);
  CHECK(world.record(world.lease).drain_deadline == TimePoint{});
}

TEST_CASE("replace: a lease is replaced once, and its replacement only after its fence") {
  ReplaceWorld world;
  const LeaseId second = world.replaced(world.lease);
  CHECK(world.refusal(world.replace(world.lease)) == Errc::IllegalTransition);

  const CallId early = world.replace(second);
  CHECK(world.refusal(early) == Errc::RebindRateLimited);
  CHECK(world.answers.at(early).error().retry_after_ms == 100);
  world.drained(world.lease);
  world.replaced(second);
}

TEST_CASE("replace: the same request id gives the same lease") {
  ReplaceWorld world;
  const wire::LeaseReplace message{.lease = world.lease, .request_id = {"again"}};
  const auto first = world.answer<wire::LeaseAcquired>(world.call(kHolder, message));
  const auto again = world.answer<wire::LeaseAcquired>(world.call(kHolder, message));
  CHECK(first.lease == again.lease);
  CHECK(first.token == again.token);
}

TEST_CASE("replace: only the holder may, and only a live lease of a tenant") {
  ReplaceWorld world;
  CHECK(world.refusal(world.replace(world.lease, wire::RebindMode::Preemptive, ConnectionId{77})) ==
        Errc::UnknownLease);
  CHECK(world.refusal(world.replace(world.lease, wire::RebindMode::Adopt)) == Errc::BadRequest);
  CHECK(world.refusal(world.replace(world.lease, wire::RebindMode::Reprefill)) == Errc::BadRequest);
  CHECK(world.refusal(world.replace({7, 1})) == Errc::UnknownLease);
  world.call(kOperator, wire::LeaseDrain{.tenant = TenantId{"a"}, .grace_ms = 1000});
  CHECK(world.refusal(world.replace(world.lease)) == Errc::Draining);
  world.call(kOperator, wire::LeaseUndrain{.tenant = TenantId{"a"}});
  world.revoke(world.lease);
  CHECK(world.refusal(world.replace(world.lease)) == Errc::LeaseFenced);
}

TEST_CASE("replace: a grant that fails leaves the old lease as it was") {
  ReplaceWorld world;
  world.workers_answer = false;
  const CallId refused = world.replace(world.lease);
  CHECK(world.record(world.lease).drain_deadline == TimePoint{});  // not before the grant
  world.answer_grant(false);
  CHECK(world.refusal(refused) == Errc::OutOfMemory);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  CHECK(world.record(world.lease).drain_deadline == TimePoint{});
  world.workers_answer = true;
  world.replaced(world.lease);
}

TEST_CASE("replace: a replacement costs one rebind, and its released lease none") {
  ReplaceWorld world;
  world.call(kOperator,
             wire::TenantAdmit{
                 .tenant = {"a"}, .max_blocks = 1024, .rebinds_per_minute = 1, .rebind_burst = 2});
  const LeaseId second = world.replaced(world.lease);
  world.drained(world.lease);
  const LeaseId third = world.replaced(second);
  world.drained(second);
  CHECK(world.refusal(world.replace(third)) == Errc::RebindRateLimited);
  CHECK_FALSE(world.record(third).replaced_by);
  world.acquired("a");  // new work
}

TEST_CASE("replace: a moved request is recorded with its mode and the worker's time") {
  ReplaceWorld world;
  const LeaseId fresh =
      world.answer<wire::LeaseAcquired>(world.replace(world.lease, wire::RebindMode::Checkpoint))
          .lease;
  events::Rebind moved{.tenant = "a",
                       .request = {"r"},
                       .old_lease = world.lease,
                       .new_lease = fresh,
                       .latency_ns = 77,
                       .mode = wire::RebindMode::Preemptive};
  world.advance(100ns);
  world.post(WorkerReported{kWorkerSocket, {.event = moved, .at = world.clock.now()}});
  moved.latency_ns = GENERATE(1'000'000, -1'000'000);
  const std::int64_t bounded = moved.latency_ns < 0 ? 0 : 100;
  world.post(WorkerReported{kWorkerSocket, {.event = moved, .at = world.clock.now()}});
  moved.new_lease = world.acquired("a");  // which replaces nothing
  world.post(WorkerReported{kWorkerSocket, {.event = moved, .at = world.clock.now()}});
  const auto recorded = world.recorded<events::Rebind>();
  REQUIRE(recorded.size() == 3);
  CHECK(recorded[0].mode == wire::RebindMode::Checkpoint);
  CHECK(recorded[0].latency_ns == 77);
  CHECK(recorded[1].latency_ns == bounded);  // since the new lease was granted
  CHECK(recorded[2].mode == wire::RebindMode::Reprefill);
  CHECK(recorded[2].latency_ns == -1);
}

TEST_CASE("replace: the status counts rebinds with a known latency, by mode and by tenant") {
  ReplaceWorld world;
  const LeaseId fresh =
      world.answer<wire::LeaseAcquired>(world.replace(world.lease, wire::RebindMode::Preemptive))
          .lease;
  events::Rebind moved{.tenant = "a",
                       .request = {"r"},
                       .old_lease = world.lease,
                       .new_lease = fresh,
                       .latency_ns = 77,
                       .mode = wire::RebindMode::Preemptive};
  world.advance(100ns);
  world.post(WorkerReported{kWorkerSocket, {.event = moved, .at = world.clock.now()}});
  moved.new_lease = world.acquired("a");  // which replaces nothing: no latency
  world.post(WorkerReported{kWorkerSocket, {.event = moved, .at = world.clock.now()}});

  const auto of_tenant = [&] {
    return tenant_views(world.state, std::nullopt, 1, world.clock.now()).at(0).rebinds;
  };
  for (const auto& [mode, rebinds] : status_view(world.state, world.clock.now()).rebinds) {
    CAPTURE(mode);
    CHECK(rebinds.since_start.count == (mode == "preemptive" ? 1 : 0));
    CHECK(rebinds.since_start.max_ns == (mode == "preemptive" ? 77 : 0));
  }
  CHECK(of_tenant().since_start.count == 1);
  CHECK(of_tenant().last_minute.count == 1);
  world.clock.advance(61s);
  CHECK(of_tenant().since_start.count == 1);
  CHECK(of_tenant().last_minute.count == 0);
}

TEST_CASE("replace: random replacements never lend more than twice the quota") {
  const auto seed = GENERATE(range(1u, 33u));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  ReplaceWorld world;
  constexpr std::uint32_t kQuota = 32;
  world.admit_tenant("a", kQuota);
  std::vector<LeaseId> held{world.lease};
  std::size_t replaced = 0;
  for (int i = 0; i < 300; ++i) {
    const LeaseId some = held[random() % held.size()];
    std::optional<CallId> granting;
    switch (random() % 7) {
      case 0:
        granting = world.acquire("a");
        break;
      case 1:
      case 2:
        granting = world.replace(some);
        break;
      case 3:
        world.drained(some);
        break;
      case 4:
        world.call(kHolder, wire::LeaseGrow{.lease = some});
        break;
      case 5:
        random() % 2 == 0 ? (void)world.revoke(some)
                          : (void)world.call(kHolder, wire::LeaseRelease{.lease = some});
        break;
      default:
        world.advance(std::chrono::milliseconds(random() % 900));
    }
    if (granting && world.answers.at(*granting))
      held.push_back(world.answer<wire::LeaseAcquired>(*granting).lease);
    std::uint64_t all = 0;
    std::map<LeaseId, int> replacements;
    world.state.leases.for_each_open([&](const LeaseRecord& record) {
      if (!record.is(LeaseState::Fenced)) all += record.charged_blocks;
      if (record.replaces) ++replacements[*record.replaces];
      replaced += record.charged_to_replacement ? 1 : 0;
    });
    REQUIRE(world.state.leases.index().charged({"a"}) <= kQuota);
    REQUIRE(all <= 2 * kQuota);
    for (const auto& [old, times] : replacements) REQUIRE(times == 1);
  }
  CHECK(replaced > 10);
}
