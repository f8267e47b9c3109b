// The purpose of the gate: revoked memory is not touched again, under a concurrent worker.
//
// A correct gate always passes. A broken one fails here only by chance, more often on an idle
// machine; gate_core_test.cpp checks the order of every access.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <span>
#include <thread>

#include "common/random.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"
#include "tests/support/leased_memory.hpp"
#include "tests/support/test_seed.hpp"

using namespace leasehold;
using testing::required;

namespace {

constexpr std::uint64_t kRounds = 20'000;
constexpr WorkerId kWorker{3};
constexpr UnitLabel kAppend{LaunchSite::KvAppend, 0, Touches::TenantMemory};
constexpr std::uint64_t kScrubbed = ~std::uint64_t{0};

/// Delays the worker between its poll and its unit now and then, as a scheduler may.
class DelayingProbe final : public GateProbe {
 public:
  void unit_polled(std::uint32_t, LaunchSite, std::uint16_t, SequenceMask) override {
    if (chance_.below(256) == 0) std::this_thread::yield();
  }

 private:
  SeededRandom chance_{7};
};

/// A broker and a worker as threads of one process over one mapping, so that a sanitizer sees both.
/// Each round is a lease: granted, used by units, revoked, drained, and its memory reused.
class Rounds {
 public:
  /// Returns how often a unit of a revoked lease ran on memory already reclaimed.
  std::uint64_t run(std::uint64_t seed) {
    const std::jthread worker([this] {
      for (std::uint64_t round = 1; round <= kRounds; ++round) work(round);
    });
    SeededRandom random(seed);
    for (std::uint64_t round = 1; round <= kRounds; ++round) grant_and_revoke(round, random);
    return late_units_ + touched_rounds_;
  }

  std::uint64_t units() const { return units_.load(); }

 private:
  static LeaseId lease_of(std::uint64_t round) { return {5, round}; }

  /// Spins before it yields: on a busy machine a yield costs a whole time slice of another thread.
  static void wait_until(const auto& condition) {
    for (int spins = 1; !condition(); ++spins) {
      if (spins % 8'192 == 0) std::this_thread::yield();
    }
  }

  // The worker: runs units until the gate refuses.
  void work(std::uint64_t round) {
    wait_until([&] { return granted_.load() == round; });
    GateSet set(round, stops_, listener_);
    set.add_sequence(std::array{required(reader_.dependency(lease_of(round)))});
    while (gate_.run(set, kAppend, [&](const LaunchPermit&) { unit(round); }) != 0) {
    }
    refused_.store(round);
  }

  void unit(std::uint64_t round) {
    if (reclaimed_.load(std::memory_order_relaxed)) late_units_.fetch_add(1);
    for (std::uint64_t& word : buffer_) word = round;
    units_.fetch_add(1, std::memory_order_relaxed);
  }

  // The broker: stores the word, takes the snapshot, waits for quiet, then reuses the memory.
  void grant_and_revoke(std::uint64_t round, SeededRandom& random) {
    reclaimed_.store(false);
    table_.grant(lease_of(round), TimePoint{});
    const std::uint64_t units_before = units_.load();
    granted_.store(round);
    wait_until([&] { return units_.load() != units_before; });
    for (std::uint64_t pause = random.below(200); pause > 0; --pause) (void)units_.load();

    store_words(round, LeaseState::Revoked);
    const auto seen = segment_.snapshot();
    wait_until([&] { return segment_.is_quiet_since(seen, Touches::TenantMemory); });
    reclaimed_.store(true, std::memory_order_relaxed);
    buffer_.fill(kScrubbed);

    wait_until([&] { return refused_.load() == round; });
    for (const std::uint64_t word : buffer_) {
      if (word == kScrubbed) continue;
      ++touched_rounds_;
      break;
    }
    store_words(round, LeaseState::Fenced);
  }

  void store_words(std::uint64_t round, LeaseState to) {
    const LeaseTable::LeaseChange flip{lease_of(round), to, RevokeReason::Operator};
    table_.store_words(kWorker, std::span(&flip, 1), TimePoint{});
  }

  LeaseTable table_ = required(LeaseTable::create(16));
  TableReader reader_ = TableReader::in_process(table_);
  WorkerSegmentReader segment_ = required(WorkerSegmentReader::create());
  WorkerSegmentWriter writer_ = WorkerSegmentWriter::in_process(segment_);
  StopFlags stops_;
  testing::RecordingListener listener_;
  DelayingProbe delay_;
  ThreadGate gate_{{.announce = &writer_.announce(0),
                    .revocations = &reader_.revocations(kWorker),
                    .stops = &stops_,
                    .probe = &delay_}};
  std::array<std::uint64_t, 32> buffer_{};
  std::atomic<std::uint64_t> granted_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> units_{0};
  std::atomic<bool> reclaimed_{false};
  std::atomic<std::uint64_t> late_units_{0};
  std::uint64_t touched_rounds_ = 0;
};

}  // namespace

TEST_CASE("gate: no unit runs on memory that was reclaimed after quiet") {
  const std::uint64_t seed = testing::test_seed();
  INFO("SEED=" << seed);
  Rounds rounds;
  CHECK(rounds.run(seed) == 0);
  CHECK(rounds.units() >= kRounds);
}
