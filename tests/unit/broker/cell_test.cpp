// The ceiling of a cell, and this host's parts of the limits of its tenants.
#include <array>
#include <catch2/catch.hpp>

#include "broker/decide/tenant/cell.hpp"
#include "cell_world.hpp"

using namespace leasehold;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("cell: a lease of its tenant ends at the ceiling at the latest") {
  CellWorld world;
  const LeaseId early = world.acquired("c");
  CHECK(world.deadline_in_table(early) == world.clock.now() + seconds(10));
  world.advance(seconds(5));
  world.call(kHolder, wire::LeaseRenew{.lease = early});
  CHECK(world.deadline_in_table(early) == world.clock.now() + seconds(10));
  world.advance(seconds(8));
  world.call(kHolder, wire::LeaseRenew{.lease = early});
  const LeaseId late = world.acquired("c");
  const TimePoint ceiling = world.state.cell.ceiling;
  CHECK(ceiling == world.clock.now() + seconds(7));
  CHECK(world.deadline_in_table(early) == ceiling);
  CHECK(world.deadline_in_table(late) == ceiling);
}

TEST_CASE("cell: at the ceiling the leases of its tenants end with cell_lost, others do not") {
  CellWorld world;
  world.move_ceiling(seconds(5));
  const LeaseId of_cell = world.acquired("c");
  const LeaseId local = world.acquired("a");
  world.advance(seconds(5));
  CHECK(reason_of(world.record(of_cell).lease) == RevokeReason::CellLost);
  CHECK(world.record(local).is(LeaseState::Live));
}

TEST_CASE("cell: a lease whose TTL ends before the ceiling ends with ttl_expired") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  world.advance(seconds(10));
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::TtlExpired);
}

TEST_CASE("cell: past the ceiling acquire gets CellLost, which may be retried") {
  CellWorld world;
  world.advance(seconds(20));
  const CallId call = world.acquire("c");
  CHECK(world.refusal(call) == Errc::CellLost);
  CHECK(world.error_of(call).retry_after_ms > 0);
  CHECK(is_retryable(Errc::CellLost));
  world.move_ceiling(seconds(5));
  world.acquired("c");
}

TEST_CASE("cell: without a ceiling acquire and renew get CellLost") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  World next(world, {});
  next.state.leases.at(lease).holder = kHolder;
  CHECK(next.refusal(next.call(kHolder, wire::LeaseRenew{.lease = lease})) == Errc::CellLost);
  CHECK(next.record(lease).is(LeaseState::Live));
  CHECK(next.refusal(next.acquire("c")) == Errc::CellLost);
}

TEST_CASE(
    "cell: a raised ceiling extends leases up to their own deadline, a lowered one shortens") {
  CellWorld world;
  world.move_ceiling(seconds(4));
  const LeaseId lease = world.acquired("c");
  const TimePoint granted = world.clock.now();
  CHECK(world.deadline_in_table(lease) == granted + seconds(4));
  world.move_ceiling(seconds(6));
  CHECK(world.deadline_in_table(lease) == granted + seconds(6));
  CHECK(world.journal.leases.at(lease).deadline_ns == (granted + seconds(6)).boottime_ns);
  world.move_ceiling(seconds(60));
  CHECK(world.deadline_in_table(lease) == granted + seconds(10));
  world.move_ceiling(seconds(3));
  CHECK(world.deadline_in_table(lease) == granted + seconds(3));
  world.advance(seconds(3));
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::CellLost);
}

TEST_CASE("cell: without a ceiling the deadline has passed, and is not taken for none") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  world.call(kLaterAgent, wire::CellAttach{.cell = {"c2"}});
  LeaseRecord& record = world.state.leases.at(lease);
  choose_deadline(world.state, record, world.clock.now() + seconds(10));
  CHECK(record.deadline != TimePoint{});
  CHECK(record.deadline <= world.clock.now());
}

TEST_CASE("cell: a ceiling in the past revokes at once") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  world.call(kAgent, wire::CellCeiling{.incarnation = 1, .ceiling_boottime_ns = 0});
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::CellLost);
}

TEST_CASE("cell: the greatest ceiling binds no lease") {
  CellWorld world;
  world.call(kAgent,
             wire::CellCeiling{.incarnation = 1,
                               .ceiling_boottime_ns = std::numeric_limits<std::int64_t>::max()});
  CHECK(world.deadline_in_table(world.acquired("c")) == world.clock.now() + seconds(10));
}

TEST_CASE("cell: another incarnation voids the parts and revokes their leases") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  const LeaseId local = world.acquired("a");
  world.move_ceiling(seconds(20), 2);
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::CellLost);
  CHECK(world.record(local).is(LeaseState::Live));
  CHECK(world.policy().max_concurrent == 0);
  CHECK(world.policy().max_blocks == 0);
  CHECK(world.journal.tenants.at({"c"}).part.incarnation == 2);
  CHECK(world.refusal(world.acquire("c")) == Errc::QuotaConcurrent);
  CHECK(world.refusal(world.admit({.revision = 9})) == Errc::CellLost);
  CHECK(world.recorded<events::CellMembership>().back().incarnation == 2);
  world.answer<wire::CellPart>(world.admit({.incarnation = 2}));
  world.acquired("c");
}

TEST_CASE("cell: a membership that changed while the broker was down voids the restored parts") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  World next(world, {});
  next.call(kAgent, wire::CellAttach{.cell = kCell});
  next.call(kAgent,
            wire::CellCeiling{.incarnation = 2,
                              .ceiling_boottime_ns = (next.clock.now() + seconds(9)).boottime_ns});
  CHECK(reason_of(next.record(lease).lease) == RevokeReason::CellLost);
  CHECK(next.state.tenants.find({"c"})->policy.max_concurrent == 0);
}

TEST_CASE("cell: a restored part goes on in the same incarnation") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  World next(world, {});
  next.call(kAgent, wire::CellAttach{.cell = kCell});
  next.call(kAgent,
            wire::CellCeiling{.incarnation = 1,
                              .ceiling_boottime_ns = (next.clock.now() + seconds(9)).boottime_ns});
  CHECK(next.record(lease).is(LeaseState::Live));
  const auto view = view_of_tenant(next.state, {"c"}, next.clock.now()).at(0);
  CHECK(view.part->revision == 1);
  CHECK_FALSE(view.part->confirmed);  // the worker has not resumed
}

TEST_CASE("cell: after a restart a part is not confirmed before its worker has resumed") {
  CellWorld world;
  world.acquired("c");
  World next(world, {});
  next.call(kAgent, wire::CellAttach{.cell = kCell});
  // The ceiling is beyond the lease's own deadline, so no deadline moves.
  next.call(kAgent,
            wire::CellCeiling{.incarnation = 1,
                              .ceiling_boottime_ns = (next.clock.now() + seconds(60)).boottime_ns});
  CHECK_FALSE(view_of_tenant(next.state, {"c"}, next.clock.now()).at(0).part->confirmed);
}

TEST_CASE("cell: an admission that is not newer changes nothing and names the part in force") {
  CellWorld world;
  world.admit({.concurrent = 2, .revision = 5});
  for (const std::uint64_t late : {1, 4, 5}) {
    const auto part =
        world.answer<wire::CellPart>(world.admit({.concurrent = 9, .revision = late}));
    CHECK(part.revision == 5);
    CHECK(world.policy().max_concurrent == 2);
  }
}

TEST_CASE("cell: nothing that an earlier agent sends takes effect after a later one has attached") {
  CellWorld world;
  const auto attached = world.answer<wire::CellAttached>(world.attach(kLaterAgent));
  CHECK(attached.incarnation == 1);
  CHECK(attached.ceiling_boottime_ns == world.state.cell.ceiling.boottime_ns);
  const TimePoint ceiling = world.state.cell.ceiling;
  CHECK(world.refusal(world.move_ceiling(seconds(60))) == Errc::PermissionDenied);
  CHECK(world.refusal(world.admit({.revision = 9})) == Errc::PermissionDenied);
  CHECK(world.state.cell.ceiling == ceiling);
  CHECK(world.policy().max_concurrent == 4);
  CHECK(world.answer<wire::CellPart>(world.admit({.revision = 9}, kLaterAgent)).revision == 9);
}

TEST_CASE("cell: only the agent changes its tenants and their keys") {
  CellWorld world;
  const std::string hash(64, 'a');
  const auto refused = [&](CallId call) {
    CHECK(world.refusal(call) == Errc::PermissionDenied);
    CHECK_THAT(world.error_of(call).detail, Catch::Contains("brokerctl cell"));
  };
  refused(world.call(kOperator, wire::TenantAdmit{.tenant = {"c"}, .max_concurrent = 64}));
  refused(world.call(kAgent, wire::TenantAdmit{.tenant = {"c"}, .max_concurrent = 64}));
  refused(world.call(kOperator, wire::TenantRemove{.tenant = {"c"}, .revoke = true}));
  refused(world.call(kOperator, wire::KeyCreate{.tenant = {"c"}, .hash = hash}));
  world.call(kAgent,
             wire::KeyCreate{.tenant = {"c"}, .hash = hash, .limits = {.max_concurrent = 64}});
  const ApiKeyId key = *world.state.api_keys.of({"c"}).begin();
  refused(world.call(kOperator, wire::KeyUpdate{.key = key, .name = "x"}));
  refused(world.call(kOperator, wire::KeyRevoke{.key = key}));
  world.answer<wire::LeasesTouched>(world.call(kAgent, wire::KeyRevoke{.key = key}));
  world.answer<wire::LeasesTouched>(
      world.call(kAgent, wire::TenantRemove{.tenant = {"c"}, .revoke = true}));
  CHECK(world.state.tenants.find({"c"}) == nullptr);
}

TEST_CASE("cell: an operator may revoke the leases of its tenants") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  world.revoke(lease);
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::Operator);
}

TEST_CASE("cell: when no agent is connected an operator may remove what the cell left") {
  CellWorld world;
  world.post(ConnectionClosed{kAgent});
  world.answer<wire::LeasesTouched>(
      world.call(kOperator, wire::TenantRemove{.tenant = {"c"}, .revoke = true}));
  CHECK(world.state.tenants.find({"c"}) == nullptr);
}

TEST_CASE("cell: the ceiling outlives the agent's connection") {
  CellWorld world;
  world.post(ConnectionClosed{kAgent});
  world.acquired("c");
  CHECK(world.refusal(world.admit({.revision = 9})) == Errc::PermissionDenied);
}

TEST_CASE("cell: the agent cannot take over a tenant of this host") {
  CellWorld world;
  const CallId call = world.call(
      kAgent,
      wire::CellAdmit{.policy = {.tenant = {"a"}, .cell = kCell}, .incarnation = 1, .revision = 1});
  CHECK(world.refusal(call) == Errc::IllegalTransition);
  CHECK_FALSE(world.state.tenants.find({"a"})->policy.cell);
}

TEST_CASE("cell: a part of zero refuses leases with a code that may be retried") {
  CellWorld world;
  world.admit({.concurrent = 0, .blocks = 0, .revision = 2});
  const CallId call = world.acquire("c");
  CHECK(world.refusal(call) == Errc::QuotaConcurrent);
  CHECK(world.error_of(call).retry_after_ms > 0);
  world.admit({.revision = 3});
  world.acquired("c");
}

TEST_CASE("cell: a lowered part is confirmed when the worker reports under the new quota") {
  CellWorld world;
  world.acquired("c");
  using Confirmed = std::array<std::uint64_t, 3>;  // revision, requests that may run, demand
  const auto confirmed = [&] {
    const wire::CellPart part = world.part();
    CHECK(part.confirmed);
    return Confirmed{part.revision, part.may_run, part.demand};
  };
  world.report_usage(4, 3);
  CHECK(confirmed() == Confirmed{1, 4, 7});
  const auto replied = world.answer<wire::CellPart>(world.admit({.concurrent = 2, .revision = 2}));
  CHECK(replied.may_run == 4);
  CHECK_FALSE(replied.confirmed);
  CHECK_FALSE(world.part().confirmed);
  world.report_usage(3);
  CHECK(confirmed() == Confirmed{2, 3, 3});
  world.report_usage(2);
  CHECK(world.part().may_run == 2);
}

TEST_CASE("cell: a part is not confirmed while a revoked lease awaits its fence") {
  CellWorld world;
  const LeaseId lease = world.acquired("c");
  world.report_usage(1);
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(lease);
  CHECK_FALSE(world.part().confirmed);
  world.end_unit(world.worker);
  world.advance(milliseconds(1));
  CHECK(world.part().confirmed);
  CHECK(world.part().may_run == 0);
}

TEST_CASE("cell: a single worker reports its use of a part") {
  CellWorld world;
  world.acquired("c");
  CHECK(world.performed<effect::SendQuota>().back().quota.divided);
  world.acquired("a");
  CHECK_FALSE(world.performed<effect::SendQuota>().back().quota.divided);
}

TEST_CASE("cell: running requests do not grow beyond a lowered part") {
  CellWorld world;
  const LeaseId lease = world.acquired("c", 8);
  world.admit({.blocks = 8, .revision = 2});
  const CallId call = world.call(kWorkerSocket, wire::LeaseGrow{.lease = lease, .extents = 1});
  CHECK(world.refusal(call) == Errc::QuotaBlocks);
}

TEST_CASE("cell: a new part begins with its first credit, and a restart adds none") {
  CellWorld world;
  const auto credit = [](World& of) {
    return of.performed<effect::SendQuota>().back().quota.rates.token_credit;
  };
  SECTION("half a minute") {
    world.admit({.revision = 2, .tokens = 600, .first_credit_ms = 30'000});
    world.acquired("c");
    CHECK(credit(world) == 300);
  }
  SECTION("none, after a time in which the cell may have used the tokens elsewhere") {
    world.admit({.concurrent = 0, .blocks = 0, .revision = 2, .tokens = 600});
    world.advance(seconds(15));
    world.admit({.revision = 3, .tokens = 600});
    world.acquired("c");
    CHECK(credit(world) == 0);
  }
  SECTION("a restarted broker does not credit a minute") {
    world.admit({.revision = 2, .tokens = 600, .first_credit_ms = 60'000});
    World next(world, {});
    next.call(kAgent, wire::CellAttach{.cell = kCell});
    next.call(kAgent, wire::CellCeiling{
                          .incarnation = 1,
                          .ceiling_boottime_ns = (next.clock.now() + seconds(9)).boottime_ns});
    next.attach_worker("w1", ConnectionId{40});
    next.acquired("c");
    CHECK(credit(next) == 0);
  }
}

TEST_CASE("cell: a worker gives up what it has of an earlier part, once for each part") {
  CellWorld world;
  const auto starts_empty = [&] {
    return world.performed<effect::SendQuota>().back().quota.rates.starts_empty;
  };
  world.admit({.revision = 2, .tokens = 600});
  const LeaseId first = world.acquired("c");
  CHECK(starts_empty());
  world.call(kHolder, wire::LeaseRelease{.lease = first});
  const LeaseId second = world.acquired("c");
  CHECK_FALSE(starts_empty());  // the same part
  world.call(kHolder, wire::LeaseRelease{.lease = second});
  world.admit({.concurrent = 0, .blocks = 0, .revision = 3});
  world.admit({.revision = 4, .tokens = 600});
  world.acquired("c");
  CHECK(starts_empty());
}

TEST_CASE("cell: blocks beyond the part may be had later") {
  CellWorld world;
  const CallId call = world.acquire("c", 65);
  CHECK(world.refusal(call) == Errc::QuotaBlocks);
  CHECK(world.error_of(call).retry_after_ms > 0);
  CHECK(world.error_of(world.acquire("a", 1025)).retry_after_ms == 0);
}

TEST_CASE("cell: the status shows the ceiling, its age and the cell's tenants") {
  CellWorld world;
  world.advance(seconds(3));
  const auto view = cell_view(world.state, world.clock.now()).value();
  CHECK(view.cell == kCell);
  CHECK(view.has_agent);
  CHECK(view.incarnation == 1);
  CHECK(view.ceiling_age_ms == 3'000);
  CHECK(view.ceiling_left_ms == 17'000);
  CHECK(view.tenants == 1);
  world.advance(seconds(30));
  CHECK(cell_view(world.state, world.clock.now())->ceiling_left_ms == 0);
  CHECK_FALSE(cell_view(ServingWorld().state, world.clock.now()));
}

TEST_CASE("cell: workers learn each membership of their host, and when it ends") {
  CellWorld world;
  const auto sent = [&world] {
    std::vector<std::uint64_t> incarnations;
    for (const auto& each : world.performed<effect::SendAdmission>())
      incarnations.push_back(each.admission.incarnation);
    return incarnations;
  };
  world.move_ceiling(seconds(20));
  CHECK(sent().empty());
  world.move_ceiling(seconds(20), 0);
  world.move_ceiling(seconds(20), 9);
  CHECK(sent() == std::vector<std::uint64_t>{0, 9});
  world.call(kLaterAgent, wire::CellAttach{.cell = CellName{"other"}});
  CHECK(sent().back() == 0);
  world.attach(kAgent);
  world.move_ceiling(seconds(20), 9);
  world.call(kOperator, wire::LeaseDrain{.worker = "w0", .grace_ms = 60'000});
  CHECK(sent().back() == 9);
}
