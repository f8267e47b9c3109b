/// A worker that sleeps gives the memory of its weights to others, and keeps its other leases.
#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

constexpr ConnectionId kNeighbourSocket{11};

wire::WeightsOpen weights_of(std::uint64_t inode, std::uint64_t size_bytes = 40 * kMiB) {
  return {.model = "m", .file_inode = inode, .layout_digest = "d", .size_bytes = size_bytes};
}

/// Worker w0 with weights of 40 of 64 MiB, and a lease of tenant "a" on it.
struct SleepyWorld : LeasedWorld {
  wire::WeightsOpened opened = load(kWorkerSocket, 1);

  wire::WeightsOpened load(ConnectionId socket, std::uint64_t inode) {
    const auto loaded = answer<wire::WeightsOpened>(call(socket, weights_of(inode)));
    if (!loaded.published) call(socket, wire::WeightsPublish{.region = loaded.region});
    return loaded;
  }
  CallId put_to_sleep(const std::string& name = "w0") {
    return call(kOperator, wire::WorkerSleep{.worker = name});
  }
  CallId wake(const std::string& name = "w0") {
    return call(kOperator, wire::WorkerWake{.worker = name});
  }
  wire::WorkerView view(std::string_view name = "w0") const {
    const auto views = worker_views(state, clock.now());
    return *std::ranges::find(views, name, &wire::WorkerView::worker);
  }
  std::vector<std::string> states() const {
    std::vector<std::string> names;
    for (const auto& event : recorded<events::WorkerService>())
      names.push_back(event.state + (event.reason.empty() ? "" : ": " + event.reason));
    return names;
  }
};

template <class Wanted>
std::size_t effect_position(const World& world) {
  const auto is_it = [](const Effect& each) { return std::holds_alternative<Wanted>(each); };
  return static_cast<std::size_t>(std::ranges::find_if(world.effects, is_it) -
                                  world.effects.begin());
}

}  // namespace

TEST_CASE(
    "worker sleep: the worker is notified first, then its weights are revoked and given back") {
  SleepyWorld world;
  world.forget_effects();

  const auto touched = world.answer<wire::LeasesTouched>(world.put_to_sleep());

  CHECK(touched.leases == std::vector{world.opened.lease});
  CHECK(reason_of(world.record(world.opened.lease).lease) == RevokeReason::WorkerAsleep);
  CHECK(effect_position<effect::SendAsleep>(world) < effect_position<effect::StoreWords>(world));
  CHECK(world.performed<effect::CloseRegion>().size() == 1);
  CHECK(world.state.weights.free_bytes() == 64 * kMiB);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  CHECK(world.view().drain == "asleep");
  CHECK(status_view(world.state, world.clock.now()).workers_asleep == 1);
  CHECK(world.states() == std::vector<std::string>{"asleep: operator"});
  CHECK(world.answer<wire::LeasesTouched>(world.put_to_sleep()).leases.empty());  // asleep already
  CHECK(world.states().size() == 1);
}

TEST_CASE("worker sleep: nothing is given back before the fence and the unmap") {
  SleepyWorld world;
  world.workers_answer = false;
  world.begin_unit(world.worker, Touches::WeightsAndScratch);
  world.put_to_sleep();
  CHECK(world.record(world.opened.lease).is(LeaseState::Revoked));
  CHECK(world.state.weights.free_bytes() == 24 * kMiB);

  world.end_unit(world.worker);
  world.post(Tick{});
  REQUIRE(world.record(world.opened.lease).is(LeaseState::Fenced));
  CHECK(world.state.weights.free_bytes() == 24 * kMiB);  // the worker still maps it

  world.answer_unmap();
  CHECK(world.state.weights.free_bytes() == 64 * kMiB);
}

TEST_CASE("worker sleep: another worker's weights from the same file stay") {
  SleepyWorld world;
  world.attach_worker("w1", kNeighbourSocket);
  const auto shared = world.load(kNeighbourSocket, 1);
  REQUIRE(shared.region == world.opened.region);

  world.put_to_sleep();

  CHECK(world.performed<effect::CloseRegion>().empty());
  CHECK(world.record(shared.lease).is(LeaseState::Live));
  CHECK(world.state.weights.find(shared.region)->state == RegionState::Published);
}

TEST_CASE("worker sleep: a sleeping worker gets no weights before it wakes") {
  SleepyWorld world;
  world.put_to_sleep();
  CHECK(world.refusal(world.call(kWorkerSocket, weights_of(1))) == Errc::WeightsLoading);

  SECTION("by itself") {
    world.answer<wire::Empty>(world.call(kWorkerSocket, wire::WeightsWake{}));
  }
  SECTION("by an operator, who is repeated") {
    world.forget_effects();
    world.answer<wire::Empty>(world.wake());
    world.answer<wire::Empty>(world.wake());
    REQUIRE(world.performed<effect::SendAsleep>().size() == 1);
    CHECK_FALSE(world.performed<effect::SendAsleep>()[0].order.asleep);
  }
  CHECK(world.view().drain == "waking");
  world.load(kWorkerSocket, 1);
  world.post(WeightsReported{kWorkerSocket, {}});
  CHECK(world.view().drain == "serving");
  CHECK(world.states() == std::vector<std::string>{"asleep: operator", "waking", "in_service"});
}

TEST_CASE("worker sleep: a worker that wakes before its memory is back gets it again unread") {
  SleepyWorld world;
  world.workers_answer = false;
  world.put_to_sleep();
  world.call(kWorkerSocket, wire::WeightsWake{});
  world.answer_unmap();

  CHECK(world.performed<effect::CloseRegion>().empty());
  CHECK(world.load(kWorkerSocket, 1).published);
}

TEST_CASE("worker sleep: two models take turns in memory for one") {
  SleepyWorld world;
  world.attach_worker("w1", kNeighbourSocket);
  const Error& full = world.error_of(world.call(kNeighbourSocket, weights_of(2)));
  CHECK(full.code == Errc::PoolExhausted);
  CHECK(full.detail.find("let it sleep") != std::string::npos);

  world.put_to_sleep("w0");
  world.load(kNeighbourSocket, 2);
  world.wake("w0");
  CHECK(world.refusal(world.call(kWorkerSocket, weights_of(1))) == Errc::PoolExhausted);
  world.call(kWorkerSocket, wire::WeightsSleep{.why = "PoolExhausted: 40 MiB"});
  CHECK(world.view("w0").drain == "asleep");
  CHECK(world.states().back() == "asleep: PoolExhausted: 40 MiB");

  world.call(kNeighbourSocket, wire::WeightsSleep{});
  CHECK(world.states().back() == "asleep: idle");
  world.wake("w0");
  world.load(kWorkerSocket, 1);
}

TEST_CASE("worker sleep: an awake worker is chosen before one that sleeps with fewer leases") {
  SleepyWorld world;
  const AttachmentId second = world.attach_worker("w1", kNeighbourSocket);
  world.call(kNeighbourSocket, wire::WeightsSleep{});
  CHECK(world.record(world.acquired("a")).worker() == world.worker);
  world.put_to_sleep("w0");
  CHECK(world.record(world.acquired("a")).worker() == second);
}

TEST_CASE("worker sleep: refusals name the worker and what to do") {
  SleepyWorld world;
  const auto refused = [&](const std::string& name) {
    return world.error_of(world.put_to_sleep(name));
  };
  CHECK(refused("w9").code == Errc::UnknownWorker);
  CHECK(world.refusal(world.wake("w9")) == Errc::UnknownWorker);
  CHECK(world.refusal(world.call(kHolder, wire::WeightsSleep{})) == Errc::PermissionDenied);
  CHECK(world.refusal(world.call(kHolder, wire::WeightsWake{})) == Errc::PermissionDenied);

  world.call(kNeighbourSocket, wire::WorkerAttach{.worker = "w1"});
  CHECK(refused("w1").code == Errc::NoModelLoaded);
  world.call(kNeighbourSocket,
             wire::WorkerReady{.address = "/run/w1", .kv_block_size_bytes = kTestBlockBytes});
  CHECK(refused("w1").code == Errc::BadRequest);  // of an earlier version

  world.call(kOperator, wire::LeaseDrain{.worker = "w0"});
  const Error draining = refused("w0");
  CHECK(draining.code == Errc::Draining);
  CHECK(draining.detail.find("brokerctl undrain --worker w0") != std::string::npos);
  world.revoke(world.lease);
  world.answer<wire::LeasesTouched>(world.put_to_sleep());  // drained: nothing needs the weights

  world.post(WeightsReported{kNeighbourSocket, {.missing = "gone"}});
  CHECK(refused("w1").code == Errc::MissingWeight);
}

TEST_CASE("worker sleep: a worker that cannot restore its weights is out of service, not waking") {
  SleepyWorld world;
  world.put_to_sleep();
  world.wake();
  world.post(WeightsReported{kWorkerSocket, {.missing = "the file is gone"}});
  CHECK(world.view().drain == "out_of_service");
  world.post(WeightsReported{kWorkerSocket, {}});
  CHECK(world.view().drain == "serving");
}

TEST_CASE("worker sleep: a restarted broker learns from the worker that it is asleep") {
  SleepyWorld world;
  world.put_to_sleep();
  World next(world, {});
  Worker& worker = *next.state.workers.find(world.worker);
  CHECK(worker.sleep == SleepState::Awake);  // not journaled
  next.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker});
  next.call(kReturnSocket,
            wire::WorkerReady{
                .address = "/run/w0", .kv_block_size_bytes = kTestBlockBytes, .can_sleep = true});
  next.post(WeightsReported{kReturnSocket, {.asleep = true}});
  CHECK(worker.sleep == SleepState::Asleep);
  CHECK(next.refusal(next.call(kReturnSocket, weights_of(1))) == Errc::WeightsLoading);
}

TEST_CASE("worker sleep: a worker that dies asleep leaves nothing, and a new one is awake") {
  SleepyWorld world;
  world.put_to_sleep();
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.state.weights.regions().empty());
  CHECK(world.view().drain == "serving");
  world.attach_worker("w0", kNeighbourSocket);
  CHECK(worker_views(world.state, world.clock.now()).back().drain == "serving");
}
