/// A worker that cannot restore its weights gives its tenants up, and gets them again later.
#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

constexpr ConnectionId kBackupWorker{11};
const std::string kWhy = "part blk.0: model.gguf has 7 bytes";

void lose_weights(World& world, ConnectionId worker = kWorkerSocket) {
  world.post(WeightsReported{worker, {.missing = kWhy}});
}

void restore_weights(World& world, ConnectionId worker = kWorkerSocket) {
  world.post(WeightsReported{worker, {}});
}

CallId acquire_on(World& world, std::string worker) {
  return world.call(kHolder,
                    wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .worker = std::move(worker)});
}

wire::WorkerView view_of(const World& world, std::string_view name) {
  const auto views = worker_views(world.state, world.clock.now());
  return *std::ranges::find(views, name, &wire::WorkerView::worker);
}

std::vector<std::string> states(const World& world) {
  std::vector<std::string> states;
  for (const auto& event : world.recorded<events::WorkerService>()) states.push_back(event.state);
  return states;
}

}  // namespace

TEST_CASE("worker service: a worker without weights loses its tenants, and gets no new one") {
  ServingWorld world;
  const LeaseId lease = world.acquired("a");
  world.attach_worker("w1", kBackupWorker);
  for (int i = 0; i < 3; ++i) world.answer<wire::LeaseAcquired>(acquire_on(world, "w1"));

  lose_weights(world);

  CHECK_FALSE(world.record(lease).is(LeaseState::Live));
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::WeightsLost);
  // Without leases it has the fewest.
  CHECK(world.record(world.acquired("a")).worker() != world.worker);
  const Error& refused = world.error_of(acquire_on(world, "w0"));
  CHECK(refused.code == Errc::MissingWeight);
  CHECK(refused.scope == FailureScope::Engine);
  CHECK(refused.detail.find(kWhy) != std::string::npos);
  CHECK(states(world) == std::vector<std::string>{"out_of_service"});
}

TEST_CASE("worker service: the views say which worker is out of service, and why") {
  ServingWorld world;
  lose_weights(world);
  CHECK(view_of(world, "w0").drain == "out_of_service");
  CHECK(view_of(world, "w0").out_of_service == kWhy);
  CHECK(status_view(world.state, world.clock.now()).workers_out_of_service == 1);

  restore_weights(world);

  CHECK(view_of(world, "w0").drain == "serving");
  CHECK_FALSE(view_of(world, "w0").out_of_service);
  CHECK(status_view(world.state, world.clock.now()).workers_out_of_service == 0);
}

TEST_CASE("worker service: when no worker has its weights the refusal is final, and says why") {
  ServingWorld world;
  lose_weights(world);
  CHECK(world.refusal(world.acquire("a")) == Errc::MissingWeight);

  restore_weights(world);
  CHECK(world.record(world.acquired("a")).worker() == world.worker);
  CHECK(states(world) == std::vector<std::string>{"out_of_service", "in_service"});
}

TEST_CASE("worker service: a report that changes nothing is not recorded") {
  ServingWorld world;
  restore_weights(world);
  lose_weights(world, ConnectionId{99});  // no worker's
  CHECK(states(world).empty());
  lose_weights(world);
  lose_weights(world);
  CHECK(states(world).size() == 1);
}

TEST_CASE("worker service: published texts end with the weights that computed them") {
  ServingWorld world;
  const CallId publishing = world.call(
      kOperator, wire::PrefixPublish{.worker = "w0", .text = "You are", .name = "rules"});
  REQUIRE(world.fills.size() == 1);
  world.post(
      FillAnswered{world.fills.back().fill.lease, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  const LeaseId shared = world.answer<wire::PrefixPublished>(publishing).lease;

  lose_weights(world);

  CHECK(reason_of(world.record(shared).lease) == RevokeReason::WeightsLost);
  CHECK(world.refusal(world.call(
            kOperator, wire::PrefixPublish{.worker = "w0", .text = "You are", .name = "rules"})) ==
        Errc::MissingWeight);
}

TEST_CASE("worker service: a restarted broker does not know a loss; the worker says it again") {
  ServingWorld world;
  lose_weights(world);
  const World next(world, {});
  CHECK_FALSE(next.state.workers.find(world.worker)->out_of_service);
}
