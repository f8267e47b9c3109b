// Sampled engine steps: the watches, the workers that sample, and the reports that count.
#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

constexpr ConnectionId kFirstWatcher{31};
constexpr ConnectionId kSecondWatcher{32};
constexpr ConnectionId kLateSocket{11};

wire::WorkerStep step_of(const std::string& tenant, std::uint64_t number = 1) {
  return {.step = number,
          .n_seqs = 1,
          .decode_tokens = 1,
          .running = 1,
          .tenants = {{.tenant = {tenant}, .decode_tokens = 1}}};
}

/// The tenant "a" holds a lease on the worker.
struct StepWorld : LeasedWorld {
  void watch(ConnectionId watcher, std::int64_t interval_ms) {
    answer<wire::Empty>(call(watcher, wire::StepWatch{.interval_ms = interval_ms}));
  }
  void close(ConnectionId connection) { post(ConnectionClosed{connection}); }
  /// The intervals sent to one worker, in order.
  std::vector<std::int64_t> intervals_of(AttachmentId id) const {
    std::vector<std::int64_t> sent;
    for (const auto& each : performed<effect::SendSampling>()) {
      if (each.worker == id) sent.push_back(each.sampling.interval_ms);
    }
    return sent;
  }
  void report(const wire::WorkerStep& step) { answer<wire::Empty>(call(kWorkerSocket, step)); }
};

using Intervals = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("steps: workers sample while a connection watches, at the shortest interval") {
  StepWorld world;
  world.watch(kFirstWatcher, 100);
  CHECK(world.intervals_of(world.worker) == Intervals{100});
  world.watch(kFirstWatcher, 100);
  world.watch(kSecondWatcher, 500);
  CHECK(world.intervals_of(world.worker) == Intervals{100});
  world.watch(kSecondWatcher, 20);
  CHECK(world.intervals_of(world.worker) == Intervals{100, 20});
  world.close(kSecondWatcher);
  CHECK(world.intervals_of(world.worker) == Intervals{100, 20, 100});
  world.close(kFirstWatcher);
  CHECK(world.intervals_of(world.worker) == Intervals{100, 20, 100, 0});
  world.close(kHolder);
  CHECK(world.intervals_of(world.worker).size() == 4);
}

TEST_CASE("steps: a worker that is ready later samples too, and only while a connection watches") {
  StepWorld world;
  CHECK(world.performed<effect::SendSampling>().empty());
  world.watch(kFirstWatcher, 100);
  const AttachmentId late = world.attach_worker("w1", kLateSocket);
  CHECK(world.intervals_of(late) == Intervals{100});
  world.close(kFirstWatcher);
  CHECK(world.intervals_of(late) == Intervals{100, 0});
  world.forget_effects();
  world.attach_worker("w2", ConnectionId{12});
  CHECK(world.performed<effect::SendSampling>().empty());
}

TEST_CASE("steps: a worker that has left gets no interval, and its sample is dropped") {
  StepWorld world;
  world.watch(kFirstWatcher, 100);
  world.report(step_of("a"));
  world.forget_effects();
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(step_views(world.state).empty());
  world.watch(kFirstWatcher, 200);
  CHECK(world.performed<effect::SendSampling>().empty());
}

TEST_CASE("steps: the newest sample of each worker is listed, and none enters the event log") {
  StepWorld world;
  const std::uint64_t newest_event = world.log.newest();
  world.watch(kFirstWatcher, 100);
  for (std::uint64_t step = 1; step <= 1000; ++step) world.report(step_of("a", step));
  const auto views = step_views(world.state);
  REQUIRE(views.size() == 1);
  CHECK(views[0].worker == "w0");
  CHECK(views[0].attachment == world.worker);
  CHECK(views[0].step.step == 1000);
  CHECK(views[0].step.tenants.at(0).tenant == TenantId{"a"});
  CHECK(world.log.newest() == newest_event);
}

TEST_CASE("steps: the time of a sample is not after its report") {
  StepWorld world;
  world.watch(kFirstWatcher, 100);
  wire::WorkerStep step = step_of("a");
  step.at_boottime_ns = world.clock.now().boottime_ns + 1;
  world.report(step);
  CHECK(step_views(world.state).at(0).step.at_boottime_ns == world.clock.now().boottime_ns);
}

TEST_CASE("steps: without a watcher a report is dropped, and the last watch drops the samples") {
  StepWorld world;
  world.report(step_of("a"));
  CHECK(step_views(world.state).empty());
  world.watch(kFirstWatcher, 100);
  world.report(step_of("a"));
  CHECK(step_views(world.state).size() == 1);
  world.close(kFirstWatcher);
  CHECK(step_views(world.state).empty());
}

TEST_CASE("steps: a forged report is refused") {
  StepWorld world;
  world.attach_worker("w1", kLateSocket);
  world.admit_tenant("idle");
  world.watch(kFirstWatcher, 100);
  const auto refusal_of = [&](ConnectionId sender, const std::string& tenant) {
    return world.refusal(world.call(sender, step_of(tenant)));
  };
  CHECK(refusal_of(kWorkerSocket, "unknown") == Errc::PermissionDenied);
  CHECK(refusal_of(kWorkerSocket, "idle") == Errc::PermissionDenied);
  CHECK(refusal_of(kLateSocket, "a") == Errc::PermissionDenied);  // its lease is on w0
  CHECK(refusal_of(kHolder, "a") == Errc::PermissionDenied);
  CHECK(step_views(world.state).empty());
}
