// The second pool of a broker process: memory of a lease like the KV memory, over a restart too.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/process/broker/fake_worker.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kSwapBytes = 16ull << 20;

/// A broker with swap and a descriptor store, and a worker without a model that serves one lease.
struct SwapFixture {
  TemporaryDirectory state = TemporaryDirectory::create("state").value();
  FdStore store;
  BrokerProcess broker{{"--swap-capacity", "16MiB", "--state-dir", state.path(),
                        "--reattach-grace-ms", "600000", "--fence-timeout-ms", "3600000"},
                       &store};
  FakeWorker worker{broker.socket(), "w0"};
  control::Client client = broker.connect();
  LeaseId lease;

  SwapFixture() {
    broker.admit(client, "a");
    lease = broker.acquire(client, "a").value().lease;
  }
  wire::SwapView swap() { return broker.status(client).swap; }
};

Errc refusal_of_growth(control::Client& client, const nlohmann::json& params) {
  const auto reply = client.call("lease.grow", {params, {}});
  REQUIRE_FALSE(reply);
  return reply.error().code;
}

}  // namespace

TEST_CASE_METHOD(
    SwapFixture,
    "swap: a restarted broker keeps it, and after a revoke its bytes are zero and free") {
  REQUIRE(worker.grow_swap(lease, 2).value().extents == 2);
  for (const UniqueFd& fd : worker.copies_of(lease)) {
    const auto mapping = Mapping::map(fd, 2u << 20, MapAccess::ReadWrite).value();
    std::fill_n(mapping.data(), mapping.size_bytes(), std::byte{0x5a});
  }

  broker.kill_and_restart();
  client = broker.connect();
  REQUIRE(worker.reconnect(broker.socket()));
  REQUIRE(worker.redeliver(lease, worker.extents_of(lease), worker.copies_of(lease)));
  REQUIRE(worker.send_ready());

  CHECK(swap().owned_bytes == 4u << 20);
  CHECK(swap().free_bytes == kSwapBytes - (4u << 20));
  CHECK(broker.view(client, lease).swap_bytes == 4u << 20);
  CHECK(broker.view(client, lease).extents == 1);
  std::vector<UniqueFd> kept = worker.copies_of(lease);
  REQUIRE(kept.size() == 3);

  broker.revoke(client, lease).value();

  REQUIRE(eventually([&] { return swap().free_bytes == kSwapBytes; }));
  CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
  for (UniqueFd& fd : kept) {
    CHECK(MemoryObject::adopt(std::move(fd)).value().allocated_bytes().value() == 0);
  }
}

TEST_CASE_METHOD(SwapFixture,
                 "swap: memory written to after its fence is quarantined in its pool") {
  REQUIRE(worker.grow_swap(lease, 1));
  worker.write_before_unmap();
  broker.revoke(client, lease).value();
  REQUIRE(eventually([&] { return swap().quarantined_bytes == 2u << 20; }));
  CHECK(swap().free_bytes == kSwapBytes - (2u << 20));
  CHECK(eventually([&] { return broker.status(client).quarantined_bytes == 2u << 20; }));
}

TEST_CASE_METHOD(SwapFixture, "swap: growth that is not allowed has a typed error") {
  const nlohmann::json grow =
      wire::LeaseGrow{
          .lease = lease, .pool = wire::MemoryPool::Swap, .request_id = next_request_id()}
          .to_json();
  CHECK(refusal_of_growth(client, grow) == Errc::PermissionDenied);  // by the holder
  nlohmann::json other_pool = grow;
  other_pool["pool"] = "disk";
  CHECK(refusal_of_growth(client, other_pool) == Errc::BadRequest);

  REQUIRE(worker.grow_swap(lease, 4));  // half of eight
  const auto beyond = worker.grow_swap(lease, 1);
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == Errc::PoolExhausted);
  CHECK(beyond.error().detail.contains("4 of 8 are free and tenant a holds 4"));
  const LeaseId engine = worker.open_weights().value().lease;
  CHECK(worker.grow_swap(engine, 1).error().code == Errc::PermissionDenied);
  broker.revoke(client, lease).value();
  REQUIRE(eventually([&] { return swap().free_bytes == kSwapBytes; }));
  CHECK(worker.grow_swap(lease, 1).error().code == Errc::LeaseFenced);
}

TEST_CASE_METHOD(BrokerWithWorker, "swap: a broker without --swap-capacity lends none") {
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  const auto refused = worker.grow_swap(lease, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::PoolExhausted);
  CHECK(refused.error().detail.contains("--swap-capacity"));
  CHECK(broker.status(client).swap.capacity_bytes == 0);
}

TEST_CASE("swap: a capacity below an extent, or too large for the extents, is a usage error") {
  CHECK(run_broker_once({"--swap-capacity", "1MiB"}) == 2);
  CHECK(run_broker_once({"--swap-capacity", "-1"}) == 2);
  CHECK(run_broker_once({"--swap-capacity", "2PiB"}) == 2);
  CHECK(run_broker_once({"--swap-capacity", "2TiB", "--capacity", "2MiB"}) == 2);
}

}  // namespace leasehold::testing
