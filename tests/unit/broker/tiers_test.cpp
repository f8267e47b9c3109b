/// Reserves of guaranteed tenants, and reclaims from scavengers.
#include <catch2/catch.hpp>
#include <random>

#include "broker/decide/memory/reserves.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kPerExtent = 8;  ///< Blocks; 16 extents in all.
constexpr ConnectionId kSecondWorker{11};

/// "a" is guaranteed, with a reserve of four extents; "b" is standard, "c" a scavenger.
struct TiersWorld : ServingWorld {
  explicit TiersWorld(std::uint32_t reserved_extents = 4) {
    admit_as("b", wire::Tier::Standard);
    admit_as("c", wire::Tier::Scavenger);
    REQUIRE(reserve(reserved_extents * kPerExtent));
  }
  CallId admit_as(const std::string& name, wire::Tier tier, std::uint32_t weight = 1) {
    return call(kOperator, wire::TenantAdmit{.tenant = {name}, .weight = weight, .tier = tier});
  }
  Result<Answer> reserve(std::uint32_t blocks, const std::string& name = "a") {
    return answers.at(call(kOperator, wire::TenantAdmit{.tenant = {name},
                                                        .reserved_blocks = blocks,
                                                        .tier = wire::Tier::Guaranteed}));
  }
  LeaseId lease_of(const std::string& name, std::uint32_t extents) {
    return acquired(name, extents * kPerExtent);
  }
  Result<Answer> ask(const std::string& name, std::uint32_t extents) {
    return answers.at(acquire(name, extents * kPerExtent));
  }
  RevokeReason reason(LeaseId lease) { return reason_of(state.leases.in_slot(lease.slot)->lease); }
  bool is_draining(LeaseId lease) { return record(lease).drain_deadline != TimePoint{}; }
  std::uint32_t reserved(const std::string& name) {
    return state.tenants.find({name})->policy.reserved_blocks;
  }
};

bool may_retry(const Result<Answer>& answer) {
  return !answer && answer.error().code == Errc::PoolExhausted && answer.error().retry_after_ms > 0;
}

bool is_refused(const Result<Answer>& answer) {
  return !answer && answer.error().code == Errc::PoolExhausted &&
         answer.error().retry_after_ms == 0;
}

}  // namespace

TEST_CASE("tiers: a reserve beyond max_blocks, of another tier or beyond the capacity is refused") {
  TiersWorld world(12);
  const auto error_of = [&world](wire::TenantAdmit admit) {
    return world.answers.at(world.call(kOperator, std::move(admit))).error();
  };
  wire::TenantAdmit admit{.tenant = {"d"}, .max_blocks = 64, .reserved_blocks = 65};
  admit.tier = wire::Tier::Guaranteed;
  CHECK(error_of(admit).code == Errc::BadRequest);
  CHECK(error_of(admit).detail.contains("0 to max_blocks, 64"));
  admit.reserved_blocks = 8;
  admit.tier = GENERATE(wire::Tier::Standard, wire::Tier::Scavenger);
  CHECK(error_of(admit).code == Errc::BadRequest);
  CHECK(error_of(admit).detail.contains("has no reserve"));
  admit.tier = wire::Tier::Guaranteed;
  admit.reserved_blocks = 33;  // five extents; four are left
  CHECK(error_of(admit).code == Errc::BadRequest);
  CHECK(error_of(admit).detail.contains("room for 32"));
  CHECK(world.state.tenants.find({"d"}) == nullptr);
  CHECK(error_of({.tenant = {"a"}, .tier = wire::Tier::Standard}).code == Errc::BadRequest);

  admit.reserved_blocks = 32;
  CHECK(world.answers.at(world.call(kOperator, admit)));
  CHECK(world.journal.tenants.at({"d"}).policy.reserved_blocks == 32);
}

TEST_CASE("tiers: blocks are reserved only once a worker reports their size") {
  World world;
  const wire::TenantAdmit admit{
      .tenant = {"a"}, .reserved_blocks = 8, .tier = wire::Tier::Guaranteed};
  CHECK(world.refusal(world.call(kOperator, admit)) == Errc::NoModelLoaded);
  world.attach_worker("w0", kWorkerSocket);
  CHECK(world.answers.at(world.call(kOperator, admit)));
}

TEST_CASE(
    "tiers: a worker with larger blocks changes no reserve that is set, also after a restart") {
  TiersWorld world(4);
  world.warnings.clear();
  world.attach_worker("w1", kSecondWorker, kTestBlockBytes * kPerExtent);  // one block per extent
  CHECK(world.warnings.empty());
  CHECK(unused_reserve(world.state, {"a"}) == 4);
  REQUIRE(world.answers.at(world.call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .weight = 7})));
  CHECK(unused_reserve(world.state, {"a"}) == 4);
  world.lease_of("b", 12);

  World next(world, {});
  next.attach_worker("w1", kSecondWorker, kTestBlockBytes * kPerExtent);
  CHECK(unused_reserve(next.state, {"a"}) == 4);
}

TEST_CASE(
    "tiers: a reserve that an older broker journaled is fixed by the next worker, and stays") {
  TiersWorld world(4);
  world.journal.tenants.at({"a"}).reserved_bytes = 0;
  World next(world, {.table = false});
  next.attach_worker("w1", kSecondWorker);
  CHECK(next.journal.tenants.at({"a"}).reserved_bytes == 4 * kPerExtent * kTestBlockBytes);
}

TEST_CASE("tiers: a standard tenant gets no memory that an unused reserve needs") {
  TiersWorld world;
  const LeaseId first = world.lease_of("b", 11);
  CHECK(is_refused(world.ask("b", 2)));
  CHECK(is_refused(
      world.answers.at(world.call(kHolder, wire::LeaseGrow{.lease = first, .extents = 2}))));
  world.lease_of("b", 1);
  CHECK(is_refused(world.ask("b", 1)));

  world.lease_of("a", 4);
  CHECK(world.state.extents.free_extents() == 0);
}

TEST_CASE("tiers: memory of scavengers covers reserves, so standard tenants get what is free") {
  TiersWorld world;
  world.lease_of("c", 4);
  world.lease_of("b", 12);
  CHECK(may_retry(world.ask("a", 4)));
}

TEST_CASE("tiers: a guaranteed tenant beyond its reserve is standard, and reclaims nothing") {
  TiersWorld world;
  const LeaseId scavenger = world.lease_of("c", 16);
  CHECK(is_refused(world.ask("a", 5)));
  CHECK_FALSE(world.is_draining(scavenger));

  world.revoke(scavenger);
  world.reserve(4 * kPerExtent, "d");
  world.lease_of("a", 12);
  CHECK(is_refused(world.ask("a", 1)));  // the reserve of d
  world.lease_of("d", 4);
}

TEST_CASE("tiers: a guaranteed acquire drains the newest scavenger, then preempts it") {
  TiersWorld world;
  const LeaseId older = world.lease_of("c", 10);
  world.advance(1ms);
  const LeaseId newer = world.lease_of("c", 6);

  CHECK(may_retry(world.ask("a", 4)));
  CHECK(world.is_draining(newer));
  CHECK_FALSE(world.is_draining(older));
  CHECK(world.record(newer).drain_deadline == world.clock.now() + 1s);
  world.advance(999ms);
  CHECK(may_retry(world.ask("a", 4)));
  CHECK(world.record(newer).is(LeaseState::Live));

  world.forget_effects();
  world.advance(1ms);
  CHECK(world.reason(newer) == RevokeReason::PreemptedByPriority);
  const auto notices = world.performed<effect::NotifyHolder>();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].revoked.reason == RevokeReason::PreemptedByPriority);
  world.lease_of("a", 4);
  CHECK(world.record(older).is(LeaseState::Live));
  world.lease_of("c", 2);  // what the guaranteed tenant left
}

TEST_CASE(
    "tiers: victims are of the scavenger with the most for its weight, and no more than needed") {
  TiersWorld world;
  world.admit_as("light", wire::Tier::Scavenger, 1);
  world.admit_as("c", wire::Tier::Scavenger, 5);
  const LeaseId light = world.lease_of("light", 2);
  world.advance(1ms);
  const LeaseId heavy_older = world.lease_of("c", 9);
  world.advance(1ms);
  const LeaseId heavy_newer = world.lease_of("c", 2);
  world.lease_of("b", 3);

  CHECK(may_retry(world.ask("a", 1)));  // 11 extents by 5 exceed 2 by 1
  CHECK(world.is_draining(heavy_newer));
  CHECK_FALSE(world.is_draining(light));
  CHECK(may_retry(world.ask("a", 3)));  // and 9 by 5 do not
  CHECK(world.is_draining(light));
  CHECK_FALSE(world.is_draining(heavy_older));
}

TEST_CASE("tiers: reclaimed memory is kept for the tenant until it stops asking") {
  TiersWorld world;
  world.lease_of("c", 12);
  world.advance(1ms);
  const LeaseId victim = world.lease_of("c", 4);
  CHECK(may_retry(world.ask("a", 4)));
  world.call(kWorkerSocket, wire::LeaseDrained{.lease = victim});
  CHECK(world.reason(victim) == RevokeReason::PreemptedByPriority);
  CHECK(world.state.extents.free_extents() == 4);

  CHECK(is_refused(world.ask("c", 1)));
  CHECK(is_refused(world.ask("b", 1)));
  const bool comes_back = GENERATE(true, false);
  if (comes_back) {
    world.lease_of("a", 4);
  } else {
    world.advance(5s);
    world.lease_of("c", 4);
  }
  CHECK(world.state.extents.free_extents() == 0);
}

TEST_CASE("tiers: two guaranteed tenants reclaim what both need") {
  TiersWorld world;
  world.reserve(4 * kPerExtent, "d");
  for (int i = 0; i < 4; ++i) world.lease_of("c", 4);
  CHECK(may_retry(world.ask("a", 4)));
  CHECK(may_retry(world.ask("d", 4)));
  world.advance(1s);
  CHECK(world.state.extents.free_extents() == 8);
  CHECK(is_refused(world.ask("b", 1)));
  world.lease_of("a", 4);
  CHECK(is_refused(world.ask("c", 1)));
  world.lease_of("d", 4);
}

TEST_CASE("tiers: growth within the reserve reclaims too") {
  TiersWorld world;
  const LeaseId lease = world.lease_of("a", 2);
  const LeaseId scavenger = world.lease_of("c", 14);
  const auto grow = [&world, lease] {
    return world.answers.at(
        world.call(kWorkerSocket, wire::LeaseGrow{.lease = lease, .extents = 2}));
  };
  CHECK(may_retry(grow()));
  world.advance(1s);
  CHECK(world.reason(scavenger) == RevokeReason::PreemptedByPriority);
  CHECK(grow());
  CHECK(is_refused(
      world.answers.at(world.call(kWorkerSocket, wire::LeaseGrow{.lease = lease, .extents = 13}))));
}

TEST_CASE("tiers: memory on its way back is waited for, and no scavenger is drained for it") {
  TiersWorld world;
  const LeaseId held = world.lease_of("a", 4);
  const LeaseId scavenger = world.lease_of("c", 12);
  world.workers_answer = false;
  world.revoke(held);
  CHECK(may_retry(world.ask("a", 4)));
  CHECK_FALSE(world.is_draining(scavenger));
  world.answer_unmap();
  world.workers_answer = true;
  world.lease_of("a", 4);
}

TEST_CASE("tiers: an acquire of a scavenger in flight gives way") {
  TiersWorld world;
  world.workers_answer = false;
  const CallId scavenger = world.acquire("c", 16 * kPerExtent);
  CHECK(may_retry(world.ask("a", 4)));
  CHECK(world.refusal(scavenger) == Errc::PoolExhausted);
  world.answer_grant();
  while (!world.unmaps.empty()) world.answer_unmap();
  world.workers_answer = true;
  world.lease_of("a", 4);
}

TEST_CASE("tiers: a drain by an operator does not put off a reclaim, nor a reclaim a drain") {
  TiersWorld world;
  const LeaseId lease = world.lease_of("c", 16);
  const auto drain = [&world, lease](std::int64_t grace_ms) {
    world.call(kOperator, wire::LeaseDrain{.lease = lease, .grace_ms = grace_ms});
  };
  const bool sooner = GENERATE(true, false);
  const bool before = GENERATE(true, false);
  if (before) drain(sooner ? 500 : 60'000);
  CHECK(may_retry(world.ask("a", 4)));
  if (!before) drain(sooner ? 500 : 60'000);
  world.advance(1s);
  CHECK(world.reason(lease) ==
        (sooner ? RevokeReason::DrainDeadline : RevokeReason::PreemptedByPriority));
  world.lease_of("a", 4);
}

TEST_CASE("tiers: a broker restart keeps reserves and the reason of a reclaim") {
  TiersWorld world;
  const LeaseId scavenger = world.lease_of("c", 12);
  world.lease_of("b", 4);
  CHECK(may_retry(world.ask("a", 4)));

  World next(world, {});

  CHECK(next.state.tenants.find({"a"})->policy.reserved_blocks == 32);
  CHECK(next.state.tenants.reserved_blocks() == 32);
  next.advance(1s);
  CHECK(reason_of(next.record(scavenger).lease) == RevokeReason::PreemptedByPriority);
}

TEST_CASE("tiers: a policy that would leave a reserve without memory is refused") {
  TiersWorld world;
  const LeaseId standard = world.lease_of("b", 10);
  const LeaseId scavenger = world.lease_of("c", 4);
  const Result<Answer> raised = world.reserve(7 * kPerExtent);
  CHECK(is_refused(raised));
  CHECK(raised.error().detail.contains("1 extents"));
  CHECK(world.reserved("a") == 32);
  CHECK(world.reserve(6 * kPerExtent));
  CHECK(is_refused(world.answers.at(world.admit_as("c", wire::Tier::Standard))));
  CHECK(world.state.tenants.find({"c"})->policy.tier == wire::Tier::Scavenger);

  CHECK(world.reserve(2 * kPerExtent));  // a lowered reserve is always accepted
  CHECK(world.answers.at(world.admit_as("c", wire::Tier::Standard)));
  CHECK(is_refused(world.ask("b", 1)));
  CHECK(world.record(scavenger).is(LeaseState::Live));
  world.revoke(standard);
  CHECK(world.reserve(12 * kPerExtent));
  CHECK(is_refused(world.ask("b", 1)));
  world.call(kOperator, wire::TenantRemove{.tenant = {"a"}});
  world.lease_of("b", 12);
}

namespace {

/// Counts from the records alone.
struct Counts {
  std::uint64_t free = 0;
  std::uint64_t returning = 0;
  std::map<std::string, std::uint64_t> held;
  explicit Counts(const State& state) : free(state.extents.free_extents()) {
    std::uint64_t used = 0;
    for (const auto& [id, extent] : state.extents.records()) {
      ++used;
      const LeaseRecord* lease = state.leases.find_open(extent.lease);
      if (extent.state != ExtentState::Owned) ++returning;
      if (extent.state == ExtentState::Owned) ++held[lease->tenant.value];
    }
    REQUIRE(used + free == 16);
  }
};

}  // namespace

TEST_CASE("tiers: in random orders, reserves stay covered and are refused only during a reclaim") {
  const unsigned seed = GENERATE(range(1u, 33u));
  CAPTURE(seed);
  std::mt19937 chance(seed);
  const auto pick = [&chance](std::size_t below) {
    return static_cast<std::uint32_t>(chance() % below);
  };
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  TiersWorld world;
  world.reserve(3 * kPerExtent, "d");
  world.admit_as("e", wire::Tier::Scavenger, 3);
  for (int step = 0; step < 300; ++step) {
    CAPTURE(step);
    world.workers_answer = pick(4) != 0;
    const std::string name = names[pick(names.size())];
    const std::uint32_t extents = 1 + pick(6);
    switch (pick(8)) {
      case 0:
        world.advance(std::chrono::milliseconds(pick(700)));
        break;
      case 1:
        world.reserve(pick(6) * kPerExtent, pick(2) == 0 ? "a" : "d");
        break;
      case 2:
        world.admit_as(pick(2) == 0 ? "c" : "e",
                       pick(3) == 0 ? wire::Tier::Standard : wire::Tier::Scavenger);
        break;
      case 3:
        if (const auto open = world.state.leases.open_leases(); !open.empty())
          world.revoke(open[pick(open.size())]);
        break;
      default: {
        const Counts before(world.state);
        const std::uint64_t reserve = world.reserved(name) / kPerExtent;
        const std::uint64_t holds = before.held.contains(name) ? before.held.at(name) : 0;
        const CallId call = world.acquire(name, extents * kPerExtent);
        const auto answer = world.answers.find(call);
        const bool refused = answer != world.answers.end() && !answer->second;
        if (refused && extents + holds <= reserve) CHECK(may_retry(answer->second));
      }
    }
    if (world.workers_answer) {
      while (!world.grants.empty()) world.answer_grant();
      while (!world.unmaps.empty()) world.answer_unmap();
    }
    const Counts now(world.state);
    std::uint64_t unused = 0;
    std::uint64_t covers = now.free + now.returning;
    for (const auto& [id, tenant] : world.state.tenants.all()) {
      const std::uint64_t holds = now.held.contains(id.value) ? now.held.at(id.value) : 0;
      const std::uint64_t reserve = tenant.policy.reserved_blocks / kPerExtent;
      unused += reserve - std::min(reserve, holds);
      if (tenant.policy.tier == wire::Tier::Scavenger) covers += holds;
    }
    CHECK(unused <= covers);
  }
}
