// Broker and worker as threads of one process over one mapping, so that ThreadSanitizer sees both.
// With it, a unit that touches fenced memory is a data race with the broker's scrub. Without it,
// the test looks for the scrubbed value.
#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "common/random.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "tests/support/fake_table.hpp"
#include "tests/support/leased_memory.hpp"

namespace leasehold::testing {
namespace {

constexpr WorkerId kStormWorker{1};
constexpr std::uint32_t kThreads = 3;
constexpr std::uint32_t kStormTenants = 4;
constexpr std::uint32_t kTiles = 8;
constexpr std::uint64_t kStormRevocations = 400;
constexpr std::uint64_t kScrubbed = ~std::uint64_t{0};

/// One tenant's memory: plain words; each tile writes its own.
using Extent = std::array<std::uint64_t, kTiles>;

/// Leases on their way from the broker to the worker.
class Grants {
 public:
  void put(LeaseId lease) {
    const std::scoped_lock lock(mutex_);
    leases_[lease.slot] = lease;
  }
  std::array<LeaseId, kStormTenants> newest() const {
    const std::scoped_lock lock(mutex_);
    return leases_;
  }

 private:
  mutable std::mutex mutex_;
  std::array<LeaseId, kStormTenants> leases_{};
};

class Storm {
 public:
  void run(std::uint64_t seed) {
    for (std::uint32_t tenant = 0; tenant < kStormTenants; ++tenant) grant({tenant, 1});
    const std::jthread broker([this, seed] { revoke_and_regrant(seed); });
    for (std::uint64_t step = 1; !over_.load(); ++step) decode(step);
  }

  std::uint64_t units() const { return units_.load(); }
  std::uint64_t violations() const { return violations_.load(); }

 private:
  // ---- the broker's thread
  void revoke_and_regrant(std::uint64_t seed) {
    SeededRandom random(seed);
    std::array<std::uint64_t, kStormTenants> generations{};
    generations.fill(1);
    for (std::uint64_t i = 0; i < kStormRevocations; ++i) {
      wait_for_units(random.below(20));
      const auto tenant = static_cast<std::uint32_t>(random.below(kStormTenants));
      reclaim({tenant, generations[tenant]});
      grant({tenant, ++generations[tenant]});
    }
    over_.store(true);
  }

  void wait_for_units(std::uint64_t more) const {
    const std::uint64_t until = tiles_.load() + more;
    while (tiles_.load() < until) std::this_thread::yield();
  }

  void reclaim(LeaseId lease) {
    store_words(lease, LeaseState::Revoked);
    const WorkerSegmentReader::Snapshot seen = worker_segment_.snapshot();
    while (!worker_segment_.is_quiet_since(seen, Touches::TenantMemory)) std::this_thread::yield();
    extents_[lease.slot].fill(kScrubbed);
    store_words(lease, LeaseState::Fenced);
  }

  void store_words(LeaseId lease, LeaseState to) {
    const LeaseTable::LeaseChange flip{lease, to, RevokeReason::Operator};
    table_.store_words(kStormWorker, std::span(&flip, 1), TimePoint{});
  }

  void grant(LeaseId lease) {
    extents_[lease.slot].fill(0);
    table_.grant(lease, TimePoint{});
    grants_.put(lease);
  }

  // ---- the worker's threads
  void decode(std::uint64_t step) {
    GateSet set(step, stops_, listener_);
    for (const LeaseId lease : grants_.newest()) {
      set.add_sequence(std::array{required(reader_.dependency(lease))});
    }
    pool_.run(kTiles, [&](std::uint32_t thread, std::uint32_t tile) {
      const UnitLabel label{LaunchSite::KvAppend, 0, Touches::TenantMemory};
      const SequenceMask live =
          gates_[thread].run(set, label, [&](const LaunchPermit& permit) { unit(permit, tile); });
      if (live != 0) units_.fetch_add(1, std::memory_order_relaxed);
      tiles_.fetch_add(1, std::memory_order_relaxed);
      return true;
    });
  }

  void unit(const LaunchPermit& permit, std::uint32_t tile) {
    for (std::uint32_t tenant = 0; tenant < kStormTenants; ++tenant) {
      if (!permit.is_live(tenant)) continue;
      std::uint64_t& word = extents_[tenant][tile];
      if (word == kScrubbed) violations_.fetch_add(1, std::memory_order_relaxed);
      ++word;
    }
  }

  std::vector<ThreadGate> make_gates() const {
    std::vector<ThreadGate> gates;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      gates.emplace_back(ThreadGate::Dependencies{.thread = thread,
                                                  .announce = &segment_writer_.announce(thread),
                                                  .revocations = &reader_.revocations(kStormWorker),
                                                  .stops = &stops_});
    }
    return gates;
  }

  LeaseTable table_ = required(LeaseTable::create(kStormTenants));
  TableReader reader_ = TableReader::in_process(table_);
  WorkerSegmentReader worker_segment_ = required(WorkerSegmentReader::create());
  WorkerSegmentWriter segment_writer_ = WorkerSegmentWriter::in_process(worker_segment_);
  StopFlags stops_;
  RecordingListener listener_;
  Grants grants_;
  std::array<Extent, kStormTenants> extents_{};
  std::atomic<std::uint64_t> units_{0};
  std::atomic<std::uint64_t> tiles_{0};  // run or refused
  std::atomic<std::uint64_t> violations_{0};
  std::atomic<bool> over_{false};
  std::vector<ThreadGate> gates_ = make_gates();
  ThreadPool pool_{kThreads};
};

}  // namespace

TEST_CASE("gate storm: no unit races with the scrub of the memory it touched") {
  Storm storm;
  storm.run(/*seed=*/5);
  CHECK(storm.violations() == 0);
  CHECK(storm.units() > 0);
}

}  // namespace leasehold::testing
