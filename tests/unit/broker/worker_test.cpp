#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

struct BusyWorker : LeasedWorld {
  BusyWorker() { begin_unit(worker, Touches::TenantMemory); }
  void report(events::Event event, TimePoint at) {
    post(WorkerReported{kWorkerSocket, {std::move(event), at}});
  }
};

}  // namespace

TEST_CASE("worker: a closed socket revokes and proves nothing") {
  BusyWorker world;

  world.post(ConnectionClosed{kWorkerSocket});
  world.advance(1s);

  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::WorkerGone);
  CHECK(world.record(world.lease).is(LeaseState::Revoked));
  CHECK(world.refusal(world.acquire("a")) == Errc::NoModelLoaded);
  world.end_unit(world.worker);
  CHECK(world.proof_of(world.lease) == "LaunchQuiet");
  CHECK(world.performed<effect::SendUnmap>().empty());
  CHECK_FALSE(world.state.extents.records().empty());  // the process may still map them
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("worker: its exit fences all its leases and frees their memory") {
  BusyWorker world;
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.proof_of(world.lease) == "ProcessExit");
  CHECK(world.table.word(0) == LeaseWord::make(1, LeaseState::Fenced, RevokeReason::WorkerGone));
  CHECK(world.performed<effect::SendUnmap>().empty());
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("worker: one killed for a slow unmap becomes Gone") {
  BusyWorker world;
  world.workers_answer = false;
  world.end_unit(world.worker);
  world.revoke(world.lease);
  CHECK(world.record(world.lease).is(LeaseState::Fenced));
  world.advance(9999ms);
  CHECK(world.performed<effect::KillWorker>().empty());
  world.advance(1ms);
  CHECK(world.performed<effect::KillWorker>().size() == 1);
}

TEST_CASE("worker: the next worker with the same name gets its own key and counter") {
  BusyWorker world;
  const CallId twice = world.call(ConnectionId{11}, wire::WorkerAttach{.worker = "w0"});
  CHECK(world.refusal(twice) == Errc::BadRequest);
  world.post(WorkerExited{exit_of(world.worker)});
  const AttachmentId next = world.attach_worker("w0", ConnectionId{12});
  CHECK(next != world.worker);
  CHECK(world.state.workers.find(next)->token_key !=
        world.state.workers.find(world.worker)->token_key);
}

TEST_CASE("worker: a user takes no more than its share of the workers") {
  BrokerConfig config = small_config();
  config.worker_users = kMaxWorkers / 2;
  World world(config);
  const auto attach = [&](const std::string& name, std::uint64_t socket, std::uint32_t uid) {
    return world.call(ConnectionId{socket}, wire::WorkerAttach{.worker = name}, uid);
  };
  attach("a0", 20, 7);
  attach("a1", 21, 7);
  CHECK(world.refusal(attach("a2", 22, 7)) == Errc::PoolExhausted);
  (void)world.answer<wire::WorkerAttached>(attach("b0", 23, 8));
  const AttachmentId first = world.state.workers.find_serving("a0")->id;
  world.post(WorkerExited{exit_of(first)});
  (void)world.answer<wire::WorkerAttached>(attach("a2", 22, 7));
}

TEST_CASE("worker: attaching twice on one connection attaches once") {
  World world;
  const wire::WorkerAttach attach{.worker = "w0"};
  const auto first = world.answer<wire::WorkerAttached>(world.call(kWorkerSocket, attach));
  const auto second = world.answer<wire::WorkerAttached>(world.call(kWorkerSocket, attach));
  CHECK(first.token_key == second.token_key);
  CHECK(world.performed<effect::BindWorker>().size() == 1);
}

TEST_CASE("worker: the first one chooses the extent size, later blocks must fit") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  world.call(ConnectionId{11}, wire::WorkerAttach{.worker = "w1"});
  const auto ready = [&world](std::uint64_t block_bytes) {
    return world.call(ConnectionId{11},
                      wire::WorkerReady{.address = "/x", .kv_block_size_bytes = block_bytes});
  };
  CHECK(world.refusal(ready(3 * kMiB)) == Errc::BadRequest);
  CHECK(world.refusal(ready(0)) == Errc::BadRequest);
  CHECK(world.answer<wire::ExtentShape>(ready(kMiB)).blocks_per_extent == 2);
}

TEST_CASE("worker: a block that the capacity cannot hold is refused, and the size stays open") {
  World world;
  world.call(kWorkerSocket, wire::WorkerAttach{.worker = "w0"});
  const auto ready = [&world](std::uint64_t block_bytes) {
    return world.call(kWorkerSocket,
                      wire::WorkerReady{.address = "/x", .kv_block_size_bytes = block_bytes});
  };
  const std::uint64_t capacity_bytes = world.state.config.capacity_bytes;
  CHECK(world.refusal(ready(capacity_bytes + 1)) == Errc::BadRequest);
  CHECK(world.refusal(ready(1ull << 40)) == Errc::BadRequest);
  CHECK(world.refusal(ready(~0ull)) == Errc::BadRequest);
  CHECK(world.state.extents.extent_size_bytes() == 0);
  CHECK(world.answer<wire::ExtentShape>(ready(capacity_bytes / 2)).blocks_per_extent >= 1);
  CHECK(world.state.extents.extent_size_bytes() <= capacity_bytes);
}

TEST_CASE("worker: the extent size of workers that have exited binds no other") {
  World world;
  const std::uint64_t capacity_bytes = world.state.config.capacity_bytes;
  const auto extent_bytes_for = [&](const std::string& name, std::uint64_t socket) {
    world.call(ConnectionId{socket}, wire::WorkerAttach{.worker = name});
    const wire::WorkerReady ready{.address = "/x", .kv_block_size_bytes = kTestBlockBytes};
    return world.answer<wire::ExtentShape>(world.call(ConnectionId{socket}, ready))
        .extent_size_bytes;
  };
  const AttachmentId greedy = world.attach_worker("w0", ConnectionId{11}, capacity_bytes);
  world.admit_tenant("a");
  const LeaseId lease = world.acquired("a", 1);
  CHECK(extent_bytes_for("w1", 12) == capacity_bytes);
  world.post(WorkerExited{exit_of(world.state.workers.find_serving("w1")->id)});

  SECTION("its memory is free") {
    world.post(WorkerExited{exit_of(greedy)});
    CHECK(world.state.extents.records().empty());
    CHECK(extent_bytes_for("w2", 13) == 2 * kMiB);
    CHECK(world.journal.extent_size_bytes == 2 * kMiB);
  }
  SECTION("its memory is quarantined") {
    for (const auto& [extent, record] : world.state.extents.records()) world.touched.insert(extent);
    world.post(WorkerExited{exit_of(greedy)});
    CHECK(extent_bytes_for("w2", 13) == capacity_bytes);
  }
  SECTION("it is lost and may resume") {
    world.revoke(lease);
    world.post(ConnectionClosed{ConnectionId{11}});
    CHECK(extent_bytes_for("w2", 13) == capacity_bytes);
  }
}

TEST_CASE("reports: a worker's revocation clocks are accepted within bounds") {
  BusyWorker world;
  const TimePoint flip = world.clock.now();
  world.revoke(world.lease);
  world.clock.advance(1ms);
  const events::ForwardRevoked too_long{.lease = world.lease, .since_flip_ns = 2'000'000};
  const events::ForwardRevoked negative{.lease = world.lease, .since_flip_ns = -5};
  const events::ForwardRevoked seen{.lease = world.lease, .since_flip_ns = 7000};
  const events::RequestCompletedEvent early{
      .tenant = "a", .lease = world.lease, .reason = "EndOfSequence"};
  const events::RequestCompletedEvent ended{.tenant = "a", .lease = world.lease};

  world.report(too_long, world.clock.now());
  world.report(negative, world.clock.now());
  world.report(seen, world.clock.now());
  world.report(early, flip - 1ms);
  world.report(ended, flip + 20us);
  world.report(ended, flip + 90us);

  CHECK(world.record(world.lease).end.clocks.refuse_ns == 7000);
  CHECK(world.record(world.lease).end.clocks.error_ns == 20'000);
  CHECK(world.record(world.lease).end.stopped_at == TimePoint{});
}

TEST_CASE("reports: a worker cannot report the end of a request for another tenant") {
  BusyWorker world;
  const auto events_after = [&world](const std::string& tenant) {
    world.report(events::RequestCompletedEvent{.tenant = tenant, .lease = world.lease}, {});
    return world.performed<effect::AppendEvent>().size();
  };
  const std::size_t before = world.performed<effect::AppendEvent>().size();
  CHECK(events_after("b") == before);
  CHECK(events_after("") == before);
  CHECK(events_after("a") == before + 1);
}

TEST_CASE("reports: a stop by the worker before the flip is recorded without a clock") {
  BusyWorker world;
  const TimePoint stopped = world.record(world.lease).deadline;
  const events::RequestCompletedEvent ended{
      .tenant = "a", .lease = world.lease, .reason = "Revoked"};
  world.clock.advance(stopped - world.clock.now() + 2800ms);  // the report arrives late
  world.post(Tick{});
  world.report(ended, stopped - 1ms);  // before the deadline
  world.report(events::ForwardRevoked{.lease = world.lease, .since_flip_ns = 0}, stopped);
  world.report(ended, stopped);
  world.report(ended, stopped + 1ms);  // a second request; the first report counts

  const auto view = lease_page(world.state, world.lease.slot, 1).items.at(0);
  CHECK(view.times.worker_stopped_boottime_ns == stopped.boottime_ns);
  CHECK(view.clocks.refuse_ns == -1);
  CHECK(view.clocks.error_ns == -1);
}

TEST_CASE("reports: a revocation has one forward_revoked event, a normal end none") {
  BusyWorker world;
  const auto refusals = [&world] {
    return std::ranges::count_if(
        world.performed<effect::AppendEvent>(), [](const effect::AppendEvent& each) {
          return std::holds_alternative<events::ForwardRevoked>(each.event);
        });
  };
  const auto refuse = [&world](LeaseId lease) {
    world.report(events::ForwardRevoked{.lease = lease, .since_flip_ns = 1}, world.clock.now());
  };
  const LeaseId released = world.acquired("a", 8);
  world.call(kHolder, wire::LeaseRelease{.lease = released});
  world.clock.advance(1ms);
  refuse(released);
  CHECK(refusals() == 0);

  world.revoke(world.lease);
  world.clock.advance(1ms);
  refuse(world.lease);
  refuse(world.lease);
  CHECK(refusals() == 1);
  CHECK(world.warnings.empty());
}

TEST_CASE("workers: the memory of a lost worker is shown as unproven") {
  BusyWorker world;
  CHECK(status_view(world.state, world.clock.now()).unproven_bytes == 0);
  world.post(ConnectionClosed{kWorkerSocket});

  CHECK(worker_views(world.state, world.clock.now())[0].state == "lost");
  CHECK(status_view(world.state, world.clock.now()).workers_lost == 1);
  CHECK(status_view(world.state, world.clock.now()).unproven_bytes == 2 * kMiB);
}

TEST_CASE("workers: one that is gone is listed for ten minutes, or until its name serves again") {
  BusyWorker world;
  const auto states = [&] {
    std::vector<std::string> all;
    for (const auto& view : worker_views(world.state, world.clock.now())) all.push_back(view.state);
    return all;
  };
  world.post(WorkerExited{exit_of(world.worker)});
  world.clock.advance(kShowsGoneWorkers - 1ms);
  CHECK(states() == std::vector<std::string>{"gone"});
  SECTION("time passes") {
    world.clock.advance(1ms);
    CHECK(states().empty());
  }
  SECTION("its successor attaches") {
    world.attach_worker("w0", ConnectionId{11});
    CHECK(states() == std::vector<std::string>{"ready"});
  }
}

TEST_CASE("reports: a worker's events about other leases and of the broker are rejected") {
  BusyWorker world;
  world.attach_worker("w1", ConnectionId{11});
  world.revoke(world.lease);
  world.clock.advance(1ms);
  const auto events_before = world.log.after(0, 1000).size();

  world.post(WorkerReported{
      ConnectionId{11},
      {events::ForwardRevoked{.lease = world.lease, .since_flip_ns = 1}, world.clock.now()}});
  world.report(events::LeaseStateChanged{.lease = world.lease}, world.clock.now());

  CHECK(world.record(world.lease).end.clocks.refuse_ns == -1);
  CHECK(world.log.after(0, 1000).size() == events_before);
  CHECK(world.warnings.size() == 2);
}

TEST_CASE("worker: the broker serves its own protocol and the one before, and no other") {
  LeasedWorld world;
  const ConnectionId socket{77};
  const auto attach = [&](std::optional<std::uint32_t> protocol) {
    return world.call(socket, wire::WorkerAttach{.worker = "next", .protocol = protocol});
  };
  const std::size_t before = world.state.workers.all().size();
  CHECK(world.refusal(attach(wire::kWorkerProtocol + 1)) == Errc::ProtocolMismatch);
  CHECK(world.state.workers.all().size() == before);

  const auto protocol =
      GENERATE(std::optional<std::uint32_t>{}, wire::kOldestWorkerProtocol, wire::kWorkerProtocol);
  CHECK(world.answer<wire::WorkerAttached>(attach(protocol)).protocol == wire::kWorkerProtocol);
}
