/// `brokerctl worker replace`: the tenants of a worker move to another one in the middle of their
/// texts, with real processes.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/machine/process.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing::failover {
namespace {

constexpr int kTenants = 8;
constexpr std::size_t kReadBefore = 40;

SystemSpec spec() {
  return {.worker_arguments = {"--slow-motion-us", "30"}, .start_worker = false};
}

TenantSpec spec_of(int tenant) {
  TenantSpec spec{.tenant = "t" + std::to_string(tenant),
                  .prompt = tenant % 2 == 0 ? "Once upon a time" : "The little fox",
                  .max_tokens = 240,
                  .rebind = true,
                  .more = {"--seed", std::to_string(tenant), "--temperature", "0.8"}};
  if (tenant % 2 == 1) spec.more.insert(spec.more.end(), {"--worker", "w1"});
  return spec;
}

/// Every other request is resumable. Its id would return the text of an earlier run.
TenantSpec stream_of(int tenant) {
  TenantSpec spec = spec_of(tenant);
  if (tenant % 2 == 0)
    spec.more.insert(spec.more.end(), {"--resumable", "--request-id", "r" + spec.tenant});
  return spec;
}

/// Worker w1 computes with one thread.
struct Running {
  explicit Running(int tenants, std::vector<std::string> worker_arguments = {}) {
    worker_arguments.insert(worker_arguments.end(), {"--threads", "1"});
    system.start_ready_worker("w1", {}, worker_arguments);
    for (int i = 0; i < tenants; ++i) {
      system.admit(spec_of(i).tenant);
      alone.push_back(system.undisturbed(spec_of(i)));
    }
    for (int i = 0; i < tenants; ++i) streams.push_back(system.start_tenant(stream_of(i)));
    for (const auto& stream : streams) REQUIRE(stream->read_tokens(kReadBefore));
  }
  /// The number of live tenants, by the broker, until `replacing` has succeeded.
  std::uint32_t fewest_live_while(Child replacing) {
    std::uint32_t fewest = system.status().tenants_live;
    REQUIRE(eventually([&] {
      fewest = std::min(fewest, system.status().tenants_live);
      return has_exited(replacing.pidfd());
    }));
    CHECK(exit_status_of(replacing) == 0);
    return fewest;
  }
  /// The reader of each stream checks that every position comes once.
  void finish() {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      CAPTURE(i);
      CHECK(streams[i]->finish() == 0);
      CHECK((streams[i]->record().tokens == alone[i]));
    }
    CHECK(system.pool_is_fully_free());
  }

  System system{spec()};
  std::vector<std::vector<std::int32_t>> alone;
  std::vector<std::unique_ptr<Tenant>> streams;
};

}  // namespace

TEST_CASE("failover: eight texts move to a worker with other threads, and none is computed again") {
  Running running(kTenants);
  System& system = running.system;
  system.start_ready_worker("w2", {}, {"--threads", "2"});

  CHECK(running.fewest_live_while(system.start_brokerctl({"worker", "replace", "w1", "w2"})) ==
        kTenants);
  REQUIRE(system.worker("w1").signal(SIGTERM));
  REQUIRE(eventually([&] { return has_exited(system.worker("w1").pidfd()); }));
  running.finish();

  const auto recorded = system.recorded<events::Rebind>();
  CHECK(recorded.size() == kTenants);
  for (const events::Rebind& rebind : recorded) {
    CHECK(rebind.mode == wire::RebindMode::Failover);
    CHECK(rebind.latency_ns > 0);
    CHECK(system.lease(rebind.old_lease).reason == RevokeReason::WorkerReplaced);
  }
  const std::string log = system.worker_log("w2");
  CHECK(count_of(log, "memory adopted") == kTenants);
  CHECK(count_of(log, "records=1 ") == kTenants);
  for (const auto& stream : running.streams) CHECK(stream->record().leases.size() == 2);
}

TEST_CASE("failover: another arithmetic is refused, and never continues a text unasked") {
  Running running(2);
  System& system = running.system;
  system.start_ready_worker("w2", {}, {"--threads", "1", "--arithmetic", "f32"});
  CHECK(system.brokerctl({"worker", "replace", "w1", "w2"}) == exit_code(Errc::BadRequest));
  Child replacing = system.start_brokerctl({"worker", "replace", "w1", "w2", "--any-arithmetic"});
  running.finish();
  CHECK(system.recorded<events::Rebind>().empty());
}

TEST_CASE("failover: a worker with a smaller context is refused, and the texts go on") {
  Running running(2);
  System& system = running.system;
  system.start_ready_worker("w2", {}, {"--threads", "1", "--max-context", "150"});
  CHECK(system.brokerctl({"worker", "replace", "w1", "w2"}) == exit_code(Errc::BadRequest));
  running.finish();
  CHECK(system.recorded<events::Rebind>().empty());
}

TEST_CASE("failover: to a larger context no memory moves, and the texts are the same") {
  Running running(2, {"--max-context", "400"});
  System& system = running.system;
  system.start_ready_worker("w2", {}, {"--threads", "1"});
  CHECK(system.brokerctl({"worker", "replace", "w1", "w2"}) == 0);
  running.finish();
  CHECK(system.recorded<events::Rebind>().size() == 2);
  CHECK(count_of(system.worker_log("w2"), "memory adopted") == 0);
  for (const auto& stream : running.streams) {
    REQUIRE(stream->record().leases.size() == 2);
    CHECK(system.lease(stream->record().leases[1]).worker == "w2");
  }
}

TEST_CASE("failover: with --any-arithmetic of both a text goes on in another one, and says so") {
  Running running(1);
  System& system = running.system;
  TenantSpec any = spec_of(2);
  any.more.push_back("--any-arithmetic");
  system.admit(any.tenant);
  const auto stream = system.start_streaming(any, kReadBefore);
  system.start_ready_worker("w2", {}, {"--threads", "1", "--arithmetic", "f32"});
  Child replacing = system.start_brokerctl({"worker", "replace", "w1", "w2", "--any-arithmetic"});

  CHECK(stream->finish() == 0);
  running.finish();

  const runner::TenantRecord& record = stream->record();
  CHECK(record.tokens.size() == any.max_tokens);
  REQUIRE(record.leases.size() == 2);
  CHECK(system.lease(record.leases[1]).worker == "w2");
  const auto rebound = std::ranges::find(record.reported, "rebound", &runner::TenantEvent::event);
  REQUIRE(rebound != record.reported.end());
  CHECK(rebound->other_arithmetic == "f32");
  CHECK(running.streams[0]->record().leases.size() == 1);
  CHECK(count_of(system.worker_log("w2"), "memory adopted") == 0);
}

TEST_CASE("failover: the new worker is killed while it maps memory, and the old one goes on") {
  Running running(4);
  System& system = running.system;
  system.start_ready_worker("w2", "worker.extents.mapped:kill", {"--threads", "1"});
  CHECK(system.brokerctl({"worker", "replace", "w1", "w2"}) == exit_code(Errc::IllegalTransition));
  running.finish();
  const auto workers = system.view().workers().value();
  const auto old = std::ranges::find(workers, "w1", &wire::WorkerView::worker);
  REQUIRE(old != workers.end());
  CHECK(old->drain == "serving");
}

TEST_CASE("failover: the old worker is killed while its leases move, and all texts go on") {
  Running running(4);
  System& system = running.system;
  system.start_ready_worker("w2", {}, {"--threads", "1"});
  Child replacing = system.start_brokerctl({"worker", "replace", "w1", "w2"});
  REQUIRE(eventually([&] {
    const auto changes = system.recorded<events::LeaseStateChanged>();
    return std::ranges::any_of(
        changes, [](const auto& change) { return change.reason == RevokeReason::WorkerReplaced; });
  }));
  REQUIRE(system.worker("w1").signal(SIGKILL));
  running.finish();
}

}  // namespace leasehold::testing::failover
