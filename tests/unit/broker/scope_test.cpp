/// The scope of every refusal: a condition of a worker or of the broker concerns every tenant.
#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

wire::LeaseAcquire acquire_of(std::string tenant, std::uint32_t blocks = 8,
                              std::optional<std::string> worker = {}) {
  return {.tenant = {std::move(tenant)}, .blocks = blocks, .worker = std::move(worker)};
}

Error error_of_call(const World& world, CallId call) {
  const auto& answer = world.answers.at(call);
  REQUIRE_FALSE(answer);
  return answer.error();
}

template <class Message>
Error error_after(World& world, Message message, ConnectionId from = kHolder) {
  return error_of_call(world, world.call(from, std::move(message)));
}

Error draining_worker(ServingWorld& world) {
  world.call(kOperator, wire::LeaseDrain{.worker = "w0", .grace_ms = 1000});
  return error_after(world, acquire_of("a", 8, "w0"));
}
Error draining_workers(ServingWorld& world) {
  world.call(kOperator, wire::LeaseDrain{.worker = "w0", .grace_ms = 1000});
  return error_after(world, acquire_of("a"));
}
Error draining_tenant(ServingWorld& world) {
  world.call(kOperator, wire::LeaseDrain{.tenant = TenantId{"a"}, .grace_ms = 1000});
  return error_after(world, acquire_of("a"));
}
Error stopping_broker(ServingWorld& world) {
  world.post(Shutdown{});
  return error_after(world, acquire_of("a"));
}
Error stopping_broker_to_worker(ServingWorld& world) {
  world.post(Shutdown{});
  return error_after(world, wire::WorkerAttach{.worker = "w1"}, ConnectionId{11});
}
Error stopping_broker_to_loader(ServingWorld& world) {
  world.post(Shutdown{});
  return error_after(world, wire::WeightsOpen{.model = "m", .size_bytes = kMiB}, kWorkerSocket);
}
Error returning_workers(ServingWorld& world) {
  world.restart();
  return error_after(world, acquire_of("a"));
}
Error growth_on_returning_worker(ServingWorld& world) {
  const LeaseId lease = world.acquired("a");
  world.restart();
  world.record(lease).holder = kHolder;
  return error_after(world, wire::LeaseGrow{.lease = lease, .extents = 1});
}
Error unknown_attachment(ServingWorld& world) {
  return error_after(world, wire::WorkerAttach{.worker = "w0", .resume = AttachmentId{99}},
                     kReturnSocket);
}
Error no_worker(ServingWorld& world) {
  world.post(WorkerExited{exit_of(world.worker)});
  return error_after(world, acquire_of("a"));
}
Error named_worker_missing(ServingWorld& world) {
  return error_after(world, acquire_of("a", 8, "w9"));
}
Error unknown_tenant(ServingWorld& world) {
  return error_after(world, acquire_of("z"));
}
Error over_quota(ServingWorld& world) {
  return error_after(world, acquire_of("a", 1025));
}
Error over_pool(ServingWorld& world) {
  world.acquired("a");
  return error_after(world, acquire_of("a", 16 * 8));  // all extents
}
Error beyond_capacity(ServingWorld& world) {
  return error_after(world, acquire_of("a", 17 * 8));
}
Error ended_lease(ServingWorld& world) {
  const LeaseId lease = world.acquired("a");
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(lease);
  return error_after(world, wire::LeaseRenew{.lease = lease});
}

}  // namespace

TEST_CASE("scope: each refusal says whether it concerns one tenant or every tenant") {
  struct Row {
    std::string_view situation;
    Error (*refuse)(ServingWorld&);
    Errc code;
    FailureScope scope;
  };
  using enum FailureScope;
  const Row rows[] = {
      {"draining worker", draining_worker, Errc::Draining, Engine},
      {"draining workers", draining_workers, Errc::Draining, Engine},
      {"draining tenant", draining_tenant, Errc::Draining, Tenant},
      {"stopping broker", stopping_broker, Errc::Draining, Engine},
      {"stopping broker, attach", stopping_broker_to_worker, Errc::Draining, Engine},
      {"stopping broker, weights", stopping_broker_to_loader, Errc::Draining, Engine},
      {"returning workers", returning_workers, Errc::BrokerLost, Engine},
      {"growth on a returning worker", growth_on_returning_worker, Errc::BrokerLost, Engine},
      {"unknown attachment", unknown_attachment, Errc::BrokerLost, Engine},
      {"no worker", no_worker, Errc::NoModelLoaded, Engine},
      {"missing named worker", named_worker_missing, Errc::UnknownWorker, Tenant},
      {"unknown tenant", unknown_tenant, Errc::UnknownTenant, Tenant},
      {"over quota", over_quota, Errc::QuotaBlocks, Tenant},
      {"over pool", over_pool, Errc::PoolExhausted, Tenant},
      {"beyond capacity", beyond_capacity, Errc::BadRequest, Tenant},
      {"ended lease", ended_lease, Errc::LeaseRevoked, Tenant},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    ServingWorld world;
    const Error error = row.refuse(world);
    CHECK(name(error.code) == name(row.code));
    CHECK(name(error.scope) == name(row.scope));
  }
}
