// Threads wait for launches that another thread begins and ends. With ThreadSanitizer a callback
// that comes too early is a data race with the launch. Without it, the test sees what the launch
// wrote.
#include "kernels/cuda/settle_watch.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

namespace leasehold::cuda {
namespace {

constexpr std::size_t kTenants = 3;
constexpr std::uint64_t kRevocations = 100;  ///< Of each tenant.

/// One tenant's memory and word; a thread of its own revokes it repeatedly.
class Tenant {
 public:
  bool is_live() const { return live_.load(std::memory_order_seq_cst); }
  /// Called within a launch that began while the tenant was live.
  void touch() {
    ++*memory_;
    touches_.fetch_add(1, std::memory_order_relaxed);
  }

  void revoke_and_regrant(SettleWatch& watch) {
    for (std::uint64_t i = 0; i < kRevocations; ++i) {
      wait_until_touched();
      live_.store(false, std::memory_order_seq_cst);
      watch.when_settled([this] { quiet_.release(); });
      quiet_.acquire();
      *memory_ = 0;
      std::this_thread::yield();  // a launch that is not over would write here
      if (*memory_ != 0) ++violations_;
      live_.store(true, std::memory_order_seq_cst);
    }
  }
  std::uint64_t violations() const { return violations_; }

 private:
  void wait_until_touched() const {
    const std::uint64_t before = touches_.load(std::memory_order_relaxed);
    while (touches_.load(std::memory_order_relaxed) == before) std::this_thread::yield();
  }

  std::atomic<bool> live_{true};
  std::atomic<std::uint64_t> touches_{0};  // relaxed: orders nothing
  // Not on the stack, which ThreadSanitizer attributes to one thread.
  std::unique_ptr<std::uint64_t> memory_ = std::make_unique<std::uint64_t>();
  std::uint64_t violations_ = 0;
  std::counting_semaphore<> quiet_{0};
};

using Tenants = std::array<Tenant, kTenants>;
/// The tenants that a launch may touch.
using Live = std::array<bool, kTenants>;

Live live_tenants(const Tenants& tenants) {
  Live live{};
  for (std::size_t i = 0; i < kTenants; ++i) live[i] = tenants[i].is_live();
  return live;
}

void touch(Tenants& tenants, const Live& live) {
  for (std::size_t i = 0; i < kTenants; ++i) {
    if (live[i]) tenants[i].touch();
  }
}

/// Calls `turn` on the launching thread until every tenant was revoked kRevocations times.
template <class Turn>
void storm(SettleWatch& watch, Tenants& tenants, Turn&& turn) {
  std::atomic<std::size_t> remaining{kTenants};
  std::vector<std::jthread> brokers;
  for (Tenant& tenant : tenants) {
    brokers.emplace_back([&] {
      tenant.revoke_and_regrant(watch);
      remaining.fetch_sub(1);
    });
  }
  while (remaining.load() > 0) turn();
}

std::uint64_t violations(const Tenants& tenants) {
  std::uint64_t all = 0;
  for (const Tenant& tenant : tenants) all += tenant.violations();
  return all;
}

}  // namespace

TEST_CASE("settle watch: after the callback no earlier launch touches the memory") {
  constexpr std::size_t kInFlight = 4;
  SettleWatch watch;
  Tenants tenants;
  std::deque<Live> in_flight;
  storm(watch, tenants, [&] {
    // Counted before the words are read: the launch announces itself.
    watch.issued();
    in_flight.push_back(live_tenants(tenants));
    if (in_flight.size() < kInFlight) return;
    touch(tenants, in_flight.front());
    in_flight.pop_front();
    watch.finished(watch.finished_count() + 1);
  });
  CHECK(violations(tenants) == 0);
}

TEST_CASE("settle watch: after the callback an endless launch no longer touches the tenant") {
  SettleWatch watch;
  Tenants tenants;
  Live shown{};
  Live running{};  // what the gate of the newest segment saw
  std::uint32_t epoch = 0;
  std::uint32_t seen = 0;
  watch.issued();
  storm(watch, tenants, [&] {
    const std::uint64_t unstamped = watch.unstamped();
    if (const Live live = live_tenants(tenants); live != shown) {
      shown = live;
      ++epoch;
    }
    if (unstamped != 0) watch.stamp(unstamped, epoch);
    watch.seen(seen);
    touch(tenants, running);
    running = shown;
    seen = epoch;
  });
  CHECK(violations(tenants) == 0);
}

TEST_CASE("settle watch: a watch added while the last launch ends is called back once") {
  constexpr std::uint64_t kRounds = 20000;
  SettleWatch watch;
  std::array<std::atomic<std::uint64_t>, kTenants> calls{};
  std::uint64_t missed = 0;
  std::barrier meet(kTenants + 1);
  std::vector<std::jthread> waiters;
  for (auto& mine : calls) {
    waiters.emplace_back([&] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        meet.arrive_and_wait();
        watch.when_settled([&] { mine.fetch_add(1); });
        meet.arrive_and_wait();
      }
    });
  }
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    watch.issued();
    meet.arrive_and_wait();
    watch.finished(round);
    meet.arrive_and_wait();
    for (const auto& mine : calls) missed += mine.load() == round ? 0 : 1;
  }
  CHECK(missed == 0);
}

}  // namespace leasehold::cuda
