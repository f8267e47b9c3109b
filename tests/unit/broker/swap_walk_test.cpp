// A random walk over both pools: leases grow, return extents of either pool, end and lose workers.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <map>

#include "common/random.hpp"
#include "tests/unit/broker/world.hpp"

namespace leasehold {
namespace {

constexpr std::array kSwapTenants{"a", "b", "c"};

BrokerConfig swap_walk_config() {
  BrokerConfig config = small_config();
  config.swap_capacity_bytes = 24 * kMiB + 1;  // twelve extents, and a byte that stays free
  return config;
}

class SwapWalk {
 public:
  explicit SwapWalk(std::uint64_t seed) : random_(seed) {
    for (const char* tenant : kSwapTenants) world_.admit_tenant(tenant);
    for (int step = 0; step < 400; ++step) {
      act();
      check();
    }
    finish();
  }

  int grown = 0;
  int refused = 0;
  int returned = 0;

 private:
  void act() {
    world_.workers_answer = random_.below(3) != 0;
    switch (random_.below(12)) {
      case 0:
        return attach();
      case 1:
        return random_.below(4) == 0 ? lose_worker() : attach();
      case 2:
      case 3:
        return acquire();
      case 4:
        return revoke();
      case 5:
        return answer_reclaim();
      case 6:
        return answer_worker();
      case 7:
        return shrink();
      default:
        return grow(kMemoryPools[random_.below(2)]);
    }
  }

  void attach() {
    if (workers_.size() == 2) return;
    const ConnectionId connection{100 + ++names_};
    workers_[connection] = world_.attach_worker("w" + std::to_string(names_), connection);
  }

  void lose_worker() {
    if (workers_.empty()) return;
    const auto [connection, worker] = *workers_.begin();
    workers_.erase(connection);
    world_.post(ConnectionClosed{connection});
    world_.post(WorkerExited{exit_of(worker)});
  }

  void acquire() {
    if (!workers_.empty()) world_.acquire(kSwapTenants[random_.below(kSwapTenants.size())]);
  }

  std::vector<LeaseId> live() {
    std::vector<LeaseId> found;
    world_.state.leases.for_each_open([&found](const LeaseRecord& record) {
      if (record.is(LeaseState::Live)) found.push_back(record.id());
    });
    return found;
  }

  std::optional<LeaseId> any_live() {
    const auto leases = live();
    if (leases.empty()) return std::nullopt;
    return leases[random_.below(leases.size())];
  }

  void revoke() {
    if (const auto lease = any_live()) world_.revoke(*lease);
  }

  ConnectionId socket_of(LeaseId lease) {
    for (const auto& [connection, worker] : workers_) {
      if (world_.record(lease).worker() == worker) return connection;
    }
    return {};
  }

  /// The share is recounted here. Of a refused growth nothing is taken.
  void grow(MemoryPool pool) {
    const auto lease = any_live();
    if (!lease) return;
    const TenantId tenant = world_.record(*lease).tenant;
    const std::size_t before = held_by(tenant);
    const std::uint32_t charged = world_.record(*lease).charged_blocks;
    const auto extents = static_cast<std::uint32_t>(1 + random_.below(3));
    world_.call(socket_of(*lease),
                wire::LeaseGrow{.lease = *lease, .extents = extents, .pool = pool});
    if (pool == MemoryPool::Kv) return;
    CHECK(world_.record(*lease).charged_blocks == charged);
    const std::size_t after = held_by(tenant);
    if (after == before) {
      ++refused;
      return;
    }
    ++grown;
    CHECK(after == before + extents);
    CHECK(after <= world_.state.extents.free_extents(MemoryPool::Swap) + 1);
  }

  std::size_t held_by(const TenantId& tenant) {
    std::size_t held = 0;
    for (const auto& [id, extent] : world_.state.extents.records()) {
      const LeaseRecord* lease = world_.state.leases.find_open(extent.lease);
      const bool counted =
          extent.pool == MemoryPool::Swap && extent.state != ExtentState::Quarantined;
      if (counted && lease != nullptr && lease->tenant == tenant) ++held;
    }
    return held;
  }

  void shrink() {
    const auto lease = any_live();
    if (lease) world_.call(socket_of(*lease), wire::LeaseShrink{.lease = *lease, .extents = 2});
  }

  /// Honest or not: names any extents of the lease, of either pool.
  void answer_reclaim() {
    if (world_.reclaims.empty()) return;
    const effect::SendReclaim asked = world_.reclaims.front();
    world_.reclaims.pop_front();
    std::vector<ExtentId> named;
    const LeaseRecord* record = world_.state.leases.find_open(asked.lease);
    if (record == nullptr) return;
    for (const ExtentId extent : record->extents) {
      if (random_.below(2) == 0) named.push_back(extent);
    }
    const auto honest = world_.state.extents.of_pool(asked.pool, named);
    const std::size_t before = record->extents.size();
    world_.post(ReclaimAnswered{asked.lease, asked.call, named, asked.pool});
    const LeaseRecord* now = world_.state.leases.find_open(asked.lease);
    if (now == nullptr) return;
    CHECK(before - now->extents.size() <= honest.size());
    if (asked.pool == MemoryPool::Swap) returned += static_cast<int>(honest.size());
  }

  void answer_worker() {
    if (!world_.grants.empty()) return world_.answer_grant(random_.below(4) != 0);
    if (!world_.unmaps.empty()) world_.answer_unmap();
  }

  /// decide() itself checks after each event that both pools conserve bytes, and who owns what.
  void check() {
    for (const auto& [id, extent] : world_.state.extents.records()) {
      const auto [known, fresh] = pools_.try_emplace(id, extent.pool);
      CHECK(known->second == extent.pool);
    }
    CHECK(world_.ledger.mismatch(world_.journal) == "");
  }

  void finish() {
    while (!workers_.empty()) lose_worker();
    CHECK(world_.state.extents.records().empty());
    CHECK(world_.ledger.granted == world_.ledger.erased);
    for (const MemoryPool pool : kMemoryPools) {
      const auto bytes = world_.state.extents.bytes_by_state(pool);
      CHECK(bytes[static_cast<std::size_t>(ExtentState::Free)] ==
            world_.state.extents.capacity_bytes(pool));
    }
  }

  SeededRandom random_;
  World world_{swap_walk_config()};
  std::map<ConnectionId, AttachmentId> workers_;
  std::uint64_t names_ = 0;
  std::map<ExtentId, MemoryPool> pools_;  ///< Of every extent that ever was.
};

}  // namespace

TEST_CASE("swap: in random orders both pools conserve bytes and no tenant exceeds its share") {
  const char* chosen = std::getenv("SEED");
  const std::uint64_t first = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  int grown = 0;
  int refused = 0;
  int returned = 0;
  for (std::uint64_t seed = first; seed < first + (chosen == nullptr ? 200 : 1); ++seed) {
    CAPTURE(seed);
    const SwapWalk walk(seed);
    grown += walk.grown;
    refused += walk.refused;
    returned += walk.returned;
  }
  CHECK(grown > 0);
  CHECK(refused > 0);
  CHECK(returned > 0);
}

}  // namespace leasehold
