/// Scavenger leases: what batches hold gives way, whatever the tier of their tenant.
#include <catch2/catch.hpp>

#include "broker/decide/memory/reserves.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kScavengerExtent = 8;  ///< Blocks; 16 extents in all.
constexpr std::int64_t kWorkerPid = 500;

/// "a" is guaranteed, with a reserve of four extents; "b" is standard.
struct ScavengerWorld : World {
  ScavengerWorld() {
    caller_pid = kWorkerPid;
    attach_worker("w0", kWorkerSocket);
    admit_tenant("a");
    admit_tenant("b");
    call(kOperator, wire::TenantAdmit{.tenant = {"a"},
                                      .reserved_blocks = 4 * kScavengerExtent,
                                      .tier = wire::Tier::Guaranteed});
    call(kOperator, wire::KeyCreate{.tenant = {"a"}, .hash = hash_of_api_key(key)});
  }
  CallId ask(const std::string& tenant, std::uint32_t extents, bool scavenger) {
    return call(kHolder, wire::LeaseAcquire{.tenant = {tenant},
                                            .blocks = extents * kScavengerExtent,
                                            .scavenger = scavenger});
  }
  LeaseId lease_of(const std::string& tenant, std::uint32_t extents, bool scavenger = false) {
    return answer<wire::LeaseAcquired>(ask(tenant, extents, scavenger)).lease;
  }
  bool is_draining(LeaseId lease) { return record(lease).drain_deadline != TimePoint{}; }
  CallId acquire_with(std::string shown, bool scavenger, const std::string& worker = "w0") {
    return call(kHolder, wire::LeaseAcquire{.tenant = {"a"},
                                            .blocks = kScavengerExtent,
                                            .worker = worker,
                                            .api_key = std::move(shown),
                                            .scavenger = scavenger});
  }
  std::string key = mint_api_key();
  std::string batch_key = batch_key_of_hash(hash_of_api_key(key));
};

}  // namespace

TEST_CASE("scavenger lease: it uses no reserve, and a reserve gets its memory") {
  ScavengerWorld world;
  const LeaseId batch = world.lease_of("a", 14, true);
  CHECK(unused_reserve(world.state, {"a"}) == 4);
  CHECK(world.error_of(world.ask("a", 4, false)).retry_after_ms > 0);
  CHECK(world.is_draining(batch));
  world.advance(world.state.config.timeouts.reclaim_grace);
  CHECK(world.state.leases.find_open(batch) == nullptr);
  world.lease_of("a", 4);
}

TEST_CASE("scavenger lease: it gives way to a standard tenant, and does not come back before it") {
  ScavengerWorld world;
  world.lease_of("a", 4);
  const LeaseId batch = world.lease_of("a", 12, true);
  CHECK(world.error_of(world.ask("b", 4, false)).retry_after_ms > 0);
  CHECK(world.is_draining(batch));
  world.advance(world.state.config.timeouts.reclaim_grace);
  CHECK(world.refusal(world.ask("a", 12, true)) == Errc::PoolExhausted);
  world.lease_of("b", 4);
  CHECK(world.answers.at(world.ask("a", 8, true)));
}

TEST_CASE("scavenger lease: a full pool refuses another one, and ends nothing for it") {
  ScavengerWorld world;
  world.lease_of("a", 4);
  const LeaseId batch = world.lease_of("a", 12, true);
  CHECK(world.error_of(world.ask("b", 4, true)).retry_after_ms == 0);
  CHECK_FALSE(world.is_draining(batch));
}

TEST_CASE("scavenger lease: it gives way to its own tenant's quota") {
  ScavengerWorld world;
  world.call(kOperator, wire::TenantAdmit{.tenant = {"b"}, .max_blocks = 6 * kScavengerExtent});
  const LeaseId batch = world.lease_of("b", 5, true);
  const Error refused = world.error_of(world.ask("b", 2, false));
  CHECK(refused.code == Errc::QuotaBlocks);
  CHECK(refused.retry_after_ms > 0);
  CHECK(world.is_draining(batch));
  world.advance(world.state.config.timeouts.reclaim_grace);
  CHECK(world.refusal(world.ask("b", 2, true)) == Errc::PoolExhausted);
  world.lease_of("b", 2);
  CHECK(world.refusal(world.ask("b", 5, true)) == Errc::QuotaBlocks);
}

TEST_CASE("scavenger lease: it stays one after a restart of the broker") {
  ScavengerWorld before;
  const LeaseId batch = before.lease_of("a", 2, true);
  World after(before, {});
  CHECK(after.record(batch).scavenger);
}

TEST_CASE("batch key: only its worker may use it, for scavenger leases, while the key is valid") {
  ScavengerWorld world;
  const CallId granted = world.acquire_with(world.batch_key, true);
  const LeaseId lease = world.answer<wire::LeaseAcquired>(granted).lease;
  CHECK(world.record(lease).api_key == api_key_id(hash_of_api_key(world.key)));
  CHECK(world.refusal(world.acquire_with(world.batch_key, false)) == Errc::BadToken);
  CHECK(world.refusal(world.acquire_with(world.batch_key, true, "w1")) == Errc::BadToken);
  std::string forged = world.batch_key;
  forged.back() = forged.back() == '0' ? '1' : '0';
  CHECK(world.refusal(world.acquire_with(forged, true)) == Errc::BadToken);
  world.caller_pid = kWorkerPid + 1;
  CHECK(world.refusal(world.acquire_with(world.batch_key, true)) == Errc::BadToken);
  CHECK(world.state.api_keys.verify(world.batch_key, 0).error().code == Errc::BadToken);
  world.caller_pid = kWorkerPid;

  world.call(kOperator, wire::KeyRevoke{.key = api_key_id(hash_of_api_key(world.key))});
  CHECK_FALSE(world.record(lease).is(LeaseState::Live));
  CHECK(world.refusal(world.acquire_with(world.batch_key, true)) == Errc::BadToken);
}
