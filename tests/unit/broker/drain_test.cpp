/// Tenants and workers that are drained as a whole.
#include <catch2/catch.hpp>

#include "broker/server/views/tenant_views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kSecondWorker{11};

const TenantId kTenant{"a"};

wire::LeaseDrain drain_tenant() {
  return {.tenant = kTenant, .grace_ms = 60'000};
}

wire::LeaseDrain drain_worker(std::string name) {
  return {.worker = std::move(name), .grace_ms = 60'000};
}

CallId acquire_on(World& world, std::string worker) {
  return world.call(
      kHolder, wire::LeaseAcquire{.tenant = kTenant, .blocks = 8, .worker = std::move(worker)});
}

std::string drain_of(const World& world, std::string_view name) {
  for (const wire::WorkerView& view : worker_views(world.state, world.clock.now())) {
    if (view.worker == name) return view.drain;
  }
  return "no such worker";
}

}  // namespace

TEST_CASE(
    "drain: a worker learns whether it gets leases when it becomes ready, and at each change") {
  ServingWorld world;
  const auto admissions = [&world] {
    std::vector<bool> admits;
    for (const auto& sent : world.performed<effect::SendAdmission>())
      admits.push_back(sent.admission.admits);
    return admits;
  };
  REQUIRE(admissions() == std::vector{true});

  world.call(kOperator, drain_worker("w0"));
  CHECK(admissions() == std::vector{true, false});
  world.call(kOperator, wire::LeaseUndrain{.worker = "w0"});
  CHECK(admissions() == std::vector{true, false, true});
}

TEST_CASE("drain: a drained tenant gets no new lease until undrain; other tenants do") {
  ServingWorld world;
  world.admit_tenant("b");
  const LeaseId lease = world.acquired("a");

  const CallId drained = world.call(kOperator, drain_tenant());

  CHECK(world.answer<wire::LeasesTouched>(drained).leases == std::vector{lease});
  CHECK(world.record(lease).is(LeaseState::Live));
  CHECK(world.record(lease).drain_deadline == world.clock.now() + 60s);
  CHECK(world.refusal(world.acquire("a")) == Errc::Draining);
  world.admit_tenant("a", 512);  // a new policy does not undrain
  CHECK(world.refusal(world.acquire("a")) == Errc::Draining);
  CHECK(tenant_views(world.state, std::nullopt, 2, world.clock.now()).at(0).draining);
  CHECK_FALSE(tenant_views(world.state, std::nullopt, 2, world.clock.now()).at(1).draining);
  world.acquired("b");

  world.call(kOperator, wire::LeaseUndrain{.tenant = kTenant}, 7);

  world.acquired("a");
  CHECK(world.record(lease).drain_deadline != TimePoint{});  // it was drained before
  CHECK_FALSE(tenant_views(world.state, std::nullopt, 1, world.clock.now()).at(0).draining);
  const auto actions = world.recorded<events::OperatorAction>();
  CHECK(actions.back().action == "undrain");
  CHECK(actions.back().object == "tenant:a");
  CHECK(actions.back().uid == 7);
}

TEST_CASE("drain: a drained tenant stays drained over a broker restart") {
  ServingWorld world;
  world.call(kOperator, drain_tenant());

  World next(world, {.table = false});

  next.attach_worker("w1", kSecondWorker);
  CHECK(next.refusal(next.acquire("a")) == Errc::Draining);
  next.call(kOperator, wire::LeaseUndrain{.tenant = kTenant});
  next.acquired("a");
}

TEST_CASE("drain: a drained worker gets no new lease and reports when it is empty") {
  ServingWorld world;
  const LeaseId lease = world.acquired("a");
  world.attach_worker("w1", kSecondWorker);
  CHECK(drain_of(world, "w0") == "serving");

  const CallId drained = world.call(kOperator, drain_worker("w0"));

  CHECK(world.answer<wire::LeasesTouched>(drained).leases == std::vector{lease});
  CHECK(drain_of(world, "w0") == "draining");
  CHECK(drain_of(world, "w1") == "serving");
  CHECK(world.refusal(acquire_on(world, "w0")) == Errc::Draining);
  const LeaseId elsewhere = world.acquired("a");
  CHECK(world.record(elsewhere).worker() != world.worker);
  CHECK(world.record(elsewhere).drain_deadline == TimePoint{});
  world.call(kWorkerSocket, wire::LeaseDrained{.lease = lease});
  CHECK(drain_of(world, "w0") == "drained");

  world.call(kOperator, drain_worker("w1"));
  CHECK(world.refusal(world.acquire("a")) == Errc::Draining);  // retryable, unlike NoModelLoaded
  world.call(kOperator, wire::LeaseUndrain{.worker = "w0"});
  CHECK(world.record(world.acquired("a")).worker() == world.worker);
  CHECK(drain_of(world, "w0") == "serving");
}

TEST_CASE("drain: a drained worker that survives a broker restart stays drained") {
  ServingWorld world;
  world.call(kOperator, drain_worker("w0"));

  const World next(world, {});

  CHECK(next.state.workers.find(world.worker)->draining);
}

TEST_CASE("drain: a worker that says it stops gets no new lease, and its leases go on") {
  ServingWorld world;
  const LeaseId lease = world.acquired("a");
  world.attach_worker("w1", kSecondWorker);
  world.post(DrainReported{ConnectionId{99}});  // no worker's
  for (int i = 0; i < 3; ++i) world.answer<wire::LeaseAcquired>(acquire_on(world, "w1"));
  REQUIRE(world.record(world.acquired("a")).worker() == world.worker);  // it has the fewest

  world.post(DrainReported{kWorkerSocket});

  CHECK(world.record(world.acquired("a")).worker() != world.worker);
  CHECK(world.refusal(acquire_on(world, "w0")) == Errc::Draining);
  CHECK(drain_of(world, "w0") == "draining");
  CHECK(world.record(lease).is(LeaseState::Live));
  CHECK(world.record(lease).drain_deadline == TimePoint{});
  world.answer<wire::LeaseRenewed>(world.call(kHolder, wire::LeaseRenew{.lease = lease}));
  world.post(DrainReported{kSecondWorker});
  CHECK(world.refusal(world.acquire("a")) == Errc::Draining);  // retryable, unlike NoModelLoaded

  const World next(world, {});
  CHECK_FALSE(next.state.workers.find(world.worker)->stopping);  // it says it again
}

TEST_CASE("drain: an acquire in flight is refused with Draining, and its memory comes back") {
  const auto [what, scope] =
      GENERATE(table<std::string, FailureScope>({{"worker", FailureScope::Engine},
                                                 {"tenant", FailureScope::Tenant},
                                                 {"lease", FailureScope::Tenant}}));
  const int grace_ms = GENERATE(0, 60'000);
  CAPTURE(what, grace_ms);
  ServingWorld world;
  const std::uint32_t free = world.state.extents.free_extents_for(world.worker);
  world.workers_answer = false;
  const CallId call = world.acquire("a");
  const LeaseId lease = world.grants.front().grant.lease;

  wire::LeaseDrain drain{.grace_ms = grace_ms};
  if (what == "worker") drain.worker = "w0";
  if (what == "tenant") drain.tenant = kTenant;
  if (what == "lease") drain.lease = lease;
  const CallId drained = world.call(kOperator, drain);

  CHECK(world.answer<wire::LeasesTouched>(drained).leases == std::vector{lease});
  CHECK(world.refusal(call) == Errc::Draining);
  CHECK(world.answers.at(call).error().scope == scope);
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::Released);
  world.answer_grant();
  CHECK(world.record(lease).is(LeaseState::Fenced));
  while (!world.unmaps.empty()) world.answer_unmap();
  CHECK(world.state.extents.free_extents_for(world.worker) == free);
  CHECK(world.performed<effect::NotifyHolder>().empty());  // it never had the lease
}

TEST_CASE("drain: growth in flight goes on, for the requests that run") {
  ServingWorld world;
  const LeaseId lease = world.acquired("a");
  world.workers_answer = false;
  const CallId grow = world.call(kWorkerSocket, wire::LeaseGrow{.lease = lease, .extents = 1});

  world.call(kOperator, drain_worker("w0"));
  world.answer_grant();

  CHECK(world.answer<wire::LeaseResized>(grow).extents == 2);
  CHECK(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("drain: a target that does not exist is refused") {
  ServingWorld world;
  const auto refused = [&](auto message) { return world.refusal(world.call(kOperator, message)); };
  CHECK(refused(wire::LeaseDrain{.tenant = TenantId{"z"}}) == Errc::UnknownTenant);
  CHECK(refused(wire::LeaseUndrain{.tenant = TenantId{"z"}}) == Errc::UnknownTenant);
  CHECK(refused(wire::LeaseDrain{.worker = "w9"}) == Errc::UnknownWorker);
  CHECK(refused(wire::LeaseUndrain{.worker = "w9"}) == Errc::UnknownWorker);
}

TEST_CASE("drain: a worker that reconnects after a broker restart is a reason to retry") {
  ServingWorld world;
  world.restart(5s);
  const auto refusals = [&] {
    return std::vector{world.refusal(world.call(kOperator, drain_worker("w0"))),
                       world.refusal(world.call(kOperator, wire::LeaseUndrain{.worker = "w0"})),
                       world.refusal(acquire_on(world, "w0"))};
  };
  CHECK(refusals() == std::vector(3, Errc::BrokerLost));

  world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker});
  CHECK(world.refusal(acquire_on(world, "w0")) == Errc::BrokerLost);
  world.answer<wire::LeasesTouched>(world.call(kOperator, drain_worker("w0")));
}

TEST_CASE("drain: a worker that does not return after a broker restart is unknown") {
  ServingWorld world;
  world.restart(5s);
  world.advance(5s);
  CHECK(world.refusal(world.call(kOperator, drain_worker("w0"))) == Errc::UnknownWorker);
}

TEST_CASE("drain: an acquire on a worker that loads its model may be retried") {
  ServingWorld world;
  world.call(kSecondWorker, wire::WorkerAttach{.worker = "w1"});
  CHECK(world.refusal(acquire_on(world, "w1")) == Errc::NoModelLoaded);
}

TEST_CASE("drain: an engine lease has no requests to finish and is refused") {
  ServingWorld world;
  const auto opened = world.answer<wire::WeightsOpened>(
      world.call(kWorkerSocket, wire::WeightsOpen{.model = "m", .size_bytes = kMiB}));
  CHECK(world.refusal(world.call(kOperator, wire::LeaseDrain{.lease = opened.lease})) ==
        Errc::BadRequest);
  CHECK(world.record(opened.lease).is(LeaseState::Live));
}
