#include <catch2/catch.hpp>

#include "tests/unit/broker/adapter_world.hpp"

using namespace leasehold;

namespace {

using Opening = AdapterWorld::Opening;

/// A world with the adapter "support" of tenant "a".
struct SupportWorld : AdapterWorld {
  explicit SupportWorld(const BrokerConfig& config = small_config()) : AdapterWorld(config) {
    add("support");
  }
};

BrokerConfig with_shared(std::uint64_t bytes) {
  BrokerConfig config = small_config();
  config.max_shared_adapter_bytes = bytes;
  return config;
}

}  // namespace

TEST_CASE("adapter leases: the worker maps whole extents, then gets the lease") {
  SupportWorld world;
  world.workers_answer = false;
  world.forget_effects();
  const CallId opening = world.open("support", {.size_bytes = kExtentBytes + 1});
  const auto grants = world.performed<effect::SendGrant>();
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].grant.scope == wire::LeaseScope::Adapter);
  CHECK(grants[0].grant.tenant == TenantId{"a"});
  CHECK(grants[0].grant.adapter == AdapterName{"support"});
  CHECK(grants[0].grant.adapter_version == 1);
  CHECK(grants[0].grant.extents.size() == 2);
  CHECK_FALSE(world.answers.contains(opening));
  world.answer_grant();
  const LeaseId lease = world.answer<wire::AdapterOpened>(opening).lease;
  CHECK(world.record(lease).deadline == TimePoint{});
  CHECK(world.state.leases.index().charged({"a"}) == 0);
  CHECK(world.state.leases.index().of(TenantId{"a"}).empty());
}

TEST_CASE("adapter leases: an unknown name and another tenant's get the same error") {
  SupportWorld world;
  const Error foreign = world.error_of(world.open("support", {.tenant = "b"}));
  const CallId unknown = world.open("nothing", {.tenant = "b"});
  CHECK(foreign.code == Errc::UnknownAdapter);
  CHECK(world.error_of(unknown).code == Errc::UnknownAdapter);
  CHECK(foreign.detail == "no adapter support for this tenant");
  CHECK(world.error_of(unknown).detail == "no adapter nothing for this tenant");
  wire::AdapterOpen of_none{
      .adapter = {"support"}, .version = 1, .digest = kDigest, .size_bytes = 1};
  CHECK(world.refusal(world.call(kWorkerSocket, of_none)) == Errc::UnknownAdapter);
}

TEST_CASE("adapter leases: an earlier version and a removed adapter are not opened") {
  SupportWorld world;
  world.add("support");
  CHECK(world.refusal(world.open("support", {.version = 1})) == Errc::UnknownAdapter);
  const LeaseId lease = world.filled("support", {.version = 2});
  world.remove("support");
  CHECK(world.refusal(world.open("support", {.version = 2})) == Errc::UnknownAdapter);
  CHECK(world.record(lease).is(LeaseState::Live));  // running texts keep it
}

TEST_CASE("adapter leases: the first open pins the digest, which no later one may change") {
  SupportWorld world;
  world.close(world.filled("support"));
  const Error changed = world.error_of(world.open("support", {.digest = kOtherDigest}));
  CHECK(changed.code == Errc::FileCorrupt);
  CHECK(changed.scope == FailureScope::Adapter);
  CHECK(world.add("support") == 2);
  world.filled("support", {.version = 2, .digest = kOtherDigest});
}

TEST_CASE("adapter leases: a refused open pins no digest") {
  SupportWorld world;
  const Opening large{.digest = kOtherDigest, .size_bytes = 5 * kExtentBytes};
  CHECK(world.refusal(world.open("support", large)) == Errc::QuotaAdapters);
  world.filled("support");
}

TEST_CASE("adapter leases: a worker has one lease of a version") {
  SupportWorld world;
  const LeaseId lease = world.opened("support");
  CHECK(world.refusal(world.open("support")) == Errc::IllegalTransition);
  const ConnectionId second{11};
  world.attach_worker("w1", second);
  world.opened("support", {.connection = second});
  world.close(lease);
  world.opened("support");
}

TEST_CASE("adapter leases: the quota counts names once and all bytes, until the fence") {
  SupportWorld world;
  world.add("second");
  world.add("third");
  const LeaseId first = world.filled("support", {.size_bytes = 2 * kExtentBytes});
  world.filled("second");
  CHECK(world.refusal(world.open("third")) == Errc::QuotaAdapters);
  CHECK(world.error_of(world.open("third")).detail ==
        "adapter third: tenant a would have 3 adapters loaded and its max_adapters is 2");
  world.add("support");  // the new version has the name of one that is loaded
  const Opening next{.version = 2, .size_bytes = 2 * kExtentBytes};
  CHECK(world.error_of(world.open("support", next)).detail ==
        "adapter support: adapters of tenant a hold 6291456 bytes, 4194304 more are needed and "
        "its max_adapter_bytes is 8388608");

  world.begin_unit(world.worker, Touches::TenantMemory);
  world.close(first);
  CHECK(world.refusal(world.open("support", next)) == Errc::QuotaAdapters);
  world.end_unit(world.worker);
  world.post(Tick{});
  world.opened("support", next);
}

TEST_CASE("adapter leases: a tenant may have none unless its policy says so") {
  SupportWorld world;
  world.admit_tenant("c");
  world.add("plain", "c");
  CHECK(world.refusal(world.open("plain", {.tenant = "c"})) == Errc::QuotaAdapters);
}

TEST_CASE("adapter leases: shared ones are charged to no tenant and have a limit per worker") {
  AdapterWorld world(with_shared(kExtentBytes));
  world.add("tone", "");
  world.add("other", "");
  const LeaseId lease = world.filled("tone", {.tenant = "b"});
  CHECK(world.record(lease).tenant.value.empty());
  CHECK(world.refusal(world.open("other")) == Errc::QuotaAdapters);
  const ConnectionId second{11};
  world.attach_worker("w1", second);
  world.opened("other", {.connection = second});
}

TEST_CASE("adapter leases: without room the worker hears when to ask again") {
  SupportWorld world;
  const auto all = static_cast<std::uint32_t>(world.state.extents.capacity_extents());
  const std::uint32_t per_extent = world.state.workers.find(world.worker)->blocks_per_extent;
  world.acquired("b", all * per_extent);
  const Error full = world.error_of(world.open("support"));
  CHECK(full.code == Errc::PoolExhausted);
  CHECK(full.retry_after_ms > 0);
}

TEST_CASE("adapter leases: a filled lease is reported once, and its end with the reason") {
  SupportWorld world;
  const LeaseId lease = world.filled("support");
  (void)world.answer<wire::Empty>(world.call(kWorkerSocket, wire::AdapterFilled{.lease = lease}));
  const auto loaded = world.recorded<events::AdapterLoaded>();
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].adapter == AdapterName{"support"});
  CHECK(loaded[0].worker == "w0");
  CHECK(loaded[0].size_bytes == kExtentBytes);
  (void)world.answer<wire::Empty>(world.close(lease));
  CHECK(world.reason(lease) == RevokeReason::ModelUnloaded);
  const auto evicted = world.recorded<events::AdapterEvicted>();
  REQUIRE(evicted.size() == 1);
  CHECK(evicted[0].reason == RevokeReason::ModelUnloaded);
  (void)world.answer<wire::Empty>(world.close(lease));
  CHECK(world.state.extents.free_extents() == world.state.extents.capacity_extents());
}

TEST_CASE("adapter leases: only its own worker fills or closes a lease, and none resizes it") {
  SupportWorld world;
  const LeaseId lease = world.opened("support");
  const ConnectionId second{11};
  world.attach_worker("w1", second);
  CHECK(world.refusal(world.call(second, wire::AdapterFilled{.lease = lease})) ==
        Errc::PermissionDenied);
  CHECK(world.refusal(world.call(second, wire::AdapterClose{.lease = lease})) ==
        Errc::PermissionDenied);
  CHECK(world.refusal(world.call(kWorkerSocket, wire::LeaseGrow{.lease = lease, .extents = 1})) ==
        Errc::PermissionDenied);
  CHECK(world.refusal(world.call(kWorkerSocket, wire::LeaseShrink{.lease = lease, .extents = 1})) ==
        Errc::PermissionDenied);
}

TEST_CASE("adapter leases: a revocation waits for units that touch tenant memory") {
  SupportWorld world;
  const LeaseId lease = world.filled("support");
  world.begin_unit(world.worker, Touches::TenantMemory);
  const auto touched = world.answer<wire::LeasesTouched>(
      world.call(kOperator, wire::LeaseRevoke{.adapter = AdapterName{"support"}}));
  CHECK(touched.leases == std::vector{lease});
  CHECK(world.record(lease).is(LeaseState::Revoked));
  world.end_unit(world.worker);
  world.post(Tick{});
  CHECK(world.proof_of(lease) == "LaunchQuiet");
  world.opened("support");  // revoke does not forbid
}

TEST_CASE("adapter leases: a revocation by tenant names the owner") {
  SupportWorld world;
  world.filled("support");
  const wire::LeaseRevoke foreign{.tenant = TenantId{"b"}, .adapter = AdapterName{"support"}};
  CHECK(world.refusal(world.call(kOperator, foreign)) == Errc::UnknownAdapter);
  const wire::LeaseRevoke own{.tenant = TenantId{"a"}, .adapter = AdapterName{"support"}};
  CHECK(world.answer<wire::LeasesTouched>(world.call(kOperator, own)).leases.size() == 1);
}

TEST_CASE("adapter leases: memory that was written to after the fence is quarantined") {
  SupportWorld world;
  const LeaseId lease = world.filled("support");
  const ExtentId extent = world.record(lease).extents.at(0);
  world.touched.insert(extent);
  world.close(lease);
  CHECK(world.state.extents.find(extent)->state == ExtentState::Quarantined);
}

TEST_CASE("adapter leases: a filled lease outlives the broker, an unfilled one does not") {
  SupportWorld before;
  before.add("second");
  const LeaseId filled = before.filled("support");
  const LeaseId unfilled = before.opened("second");
  const AttachmentId worker = before.worker;
  World world(before, {});
  (void)world.answer<wire::WorkerAttached>(
      world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = worker}));
  for (const LeaseId lease : {filled, unfilled}) {
    (void)world.answer<wire::Empty>(
        world.call(kReturnSocket,
                   wire::LeaseRedeliver{.lease = lease, .extents = world.record(lease).extents}));
  }
  (void)world.answer<wire::ExtentShape>(world.call(
      kReturnSocket,
      wire::WorkerReady{
          .address = "/run/w0.sock", .model = "tiny", .kv_block_size_bytes = kTestBlockBytes}));
  CHECK(world.record(filled).is(LeaseState::Live));
  CHECK(world.record(filled).adapter_version == 1);
  CHECK_FALSE(world.record(unfilled).is(LeaseState::Live));
  CHECK(world.refusal(world.call(kReturnSocket, wire::AdapterFilled{.lease = unfilled})) !=
        Errc::UnknownLease);
}

TEST_CASE("adapter leases: a worker that resumes is asked to repeat its call") {
  SupportWorld before;
  const AttachmentId worker = before.worker;
  World world(before, {});
  (void)world.answer<wire::WorkerAttached>(
      world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = worker}));
  const wire::AdapterOpen open{.tenant = TenantId{"a"},
                               .adapter = {"support"},
                               .version = 1,
                               .digest = kDigest,
                               .size_bytes = kExtentBytes};
  CHECK(world.refusal(world.call(kReturnSocket, open)) == Errc::BrokerLost);
}

TEST_CASE("adapter leases: a filled lease ends if an extent is missing") {
  SupportWorld before;
  const LeaseId lease = before.filled("support", {.size_bytes = 2 * kExtentBytes});
  const AttachmentId worker = before.worker;
  World world(before, {});
  (void)world.answer<wire::WorkerAttached>(
      world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = worker}));
  const ExtentId first = world.record(lease).extents.front();
  (void)world.answer<wire::Empty>(
      world.call(kReturnSocket, wire::LeaseRedeliver{.lease = lease, .extents = {first}}));
  (void)world.answer<wire::ExtentShape>(world.call(
      kReturnSocket,
      wire::WorkerReady{
          .address = "/run/w0.sock", .model = "tiny", .kv_block_size_bytes = kTestBlockBytes}));
  CHECK_FALSE(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("adapter leases: the memory of a worker that died is scrubbed, not kept for adoption") {
  BrokerConfig config = small_config();
  config.timeouts.adopt_grace = std::chrono::seconds(10);
  SupportWorld world(config);
  const LeaseId lease = world.filled("support");
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.reason(lease) == RevokeReason::WorkerGone);
  CHECK(world.state.retained.empty());
  CHECK(world.state.extents.free_extents() == world.state.extents.capacity_extents());
}
