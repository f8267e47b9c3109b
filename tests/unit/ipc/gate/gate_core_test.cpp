// The gate protocol over atomics that record every access.
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "ipc/segment/launch_gate.hpp"

using namespace leasehold;

namespace {

enum class Order : std::uint8_t { SeqCst, Acquire, Release };
enum class Action : std::uint8_t { Load, Store };

struct Access {
  Action action;
  const void* where;
  Order order;
  std::uint64_t value;
  bool operator==(const Access&) const = default;
};

std::vector<Access> log_of_accesses;

/// The machine's atomics, which record every access.
struct RecordingMemory {
  template <class T>
  struct Atomic {
    T value{};

    T load(Order order) const {
      log_of_accesses.push_back({Action::Load, this, order, value});
      return value;
    }
    void store(T next, Order order) {
      value = next;
      log_of_accesses.push_back({Action::Store, this, order, next});
    }
    void fetch_add(T more, Order order) { store(value + more, order); }
  };
  static constexpr Order seq_cst = Order::SeqCst;
  static constexpr Order acquire = Order::Acquire;
  static constexpr Order release = Order::Release;
};

struct GateFixture {
  GateFixture() { log_of_accesses.clear(); }

  RecordingMemory::Atomic<std::uint64_t> announce{};
  RecordingMemory::Atomic<std::uint64_t> revocations{1};
  RecordingMemory::Atomic<std::uint64_t> stops{1};
  GateCore<RecordingMemory> gate{announce, revocations, stops};

  /// Sets the baselines as a recheck does.
  void adopt_now() {
    gate.recheck([] { return true; });
    log_of_accesses.clear();
  }
};

constexpr std::uint64_t busy(std::uint64_t seq) {
  return announcement(seq, Touches::TenantMemory);
}

}  // namespace

TEST_CASE("gate core: the announcement is stored before either counter is read, all seq_cst") {
  GateFixture bench;
  bench.adopt_now();
  CHECK(bench.gate.begin_unit(Touches::TenantMemory));
  CHECK(log_of_accesses == std::vector<Access>{
                               {Action::Store, &bench.announce, Order::SeqCst, busy(1)},
                               {Action::Load, &bench.revocations, Order::SeqCst, 1},
                               {Action::Load, &bench.stops, Order::SeqCst, 1},
                           });
}

TEST_CASE(
    "gate core: the end of a unit is a release store that keeps the number and reports idle") {
  GateFixture bench;
  bench.gate.begin_unit(Touches::TenantMemory);
  log_of_accesses.clear();
  bench.gate.end_unit();
  CHECK(log_of_accesses ==
        std::vector<Access>{{Action::Store, &bench.announce, Order::Release, 1 << 2}});
}

TEST_CASE("gate core: the first unit rechecks at any counter values") {
  for (const std::uint64_t counter : {1ull, 2ull, 77ull}) {
    GateFixture bench;
    bench.revocations.value = counter;
    CHECK_FALSE(bench.gate.begin_unit(Touches::WeightsAndScratch));
  }
}

TEST_CASE("gate core: a move of either counter requires a recheck until one was made") {
  GateFixture bench;
  bench.adopt_now();
  bench.revocations.value = 2;
  CHECK_FALSE(bench.gate.begin_unit(Touches::TenantMemory));
  CHECK_FALSE(bench.gate.begin_unit(Touches::TenantMemory));
  bench.adopt_now();
  CHECK(bench.gate.begin_unit(Touches::TenantMemory));
  bench.stops.value = 2;
  CHECK_FALSE(bench.gate.begin_unit(Touches::TenantMemory));
}

TEST_CASE("gate core: a counter that moves while the words are compared is seen by the next unit") {
  GateFixture bench;
  bench.gate.recheck([&] { return bench.revocations.value = 2; });
  CHECK_FALSE(bench.gate.begin_unit(Touches::TenantMemory));
}

TEST_CASE("gate core: a counter that becomes zero is a change too") {
  GateFixture bench;
  bench.adopt_now();
  bench.revocations.value = 0;
  CHECK_FALSE(bench.gate.begin_unit(Touches::TenantMemory));
}

TEST_CASE("gate core: no two units of a thread have the same announcement") {
  GateFixture bench;
  std::vector<std::uint64_t> seen;
  for (int unit = 0; unit < 3; ++unit) {
    bench.gate.begin_unit(Touches::TenantMemory);
    seen.push_back(bench.announce.value);
    bench.gate.end_unit();
  }
  CHECK(seen == std::vector{busy(1), busy(2), busy(3)});
}

TEST_CASE("revoke core: every word is stored before the counter moves, all seq_cst") {
  GateFixture bench;
  RecordingMemory::Atomic<std::uint64_t> first{7};
  RecordingMemory::Atomic<std::uint64_t> second{8};
  using Revoke = RevokeCore<RecordingMemory>;
  const std::array flips{Revoke::WordStore{&first, 70}, Revoke::WordStore{&second, 80}};
  Revoke::store_words(flips, [](const auto& word_store) { return word_store; }, bench.revocations);
  CHECK(log_of_accesses == std::vector<Access>{
                               {Action::Store, &first, Order::SeqCst, 70},
                               {Action::Store, &second, Order::SeqCst, 80},
                               {Action::Store, &bench.revocations, Order::SeqCst, 2},
                           });
}

TEST_CASE("revoke core: the snapshot is seq_cst, the wait for quiet is an acquire") {
  GateFixture bench;
  using Revoke = RevokeCore<RecordingMemory>;
  bench.announce.value = busy(3);
  const std::uint64_t seen = Revoke::snapshot(bench.announce);
  CHECK_FALSE(Revoke::is_quiet_since(seen, bench.announce, Touches::TenantMemory));
  CHECK(log_of_accesses == std::vector<Access>{
                               {Action::Load, &bench.announce, Order::SeqCst, busy(3)},
                               {Action::Load, &bench.announce, Order::Acquire, busy(3)},
                           });
}

TEST_CASE("quiet: a unit that cannot reach the scope, or has ended, is not waited for") {
  constexpr auto kScratch = announcement(3, Touches::WeightsAndScratch);
  constexpr auto kIdle = announcement(3, Touches::Nothing);
  STATIC_REQUIRE(is_quiet(kIdle, kIdle, Touches::WeightsAndScratch));
  STATIC_REQUIRE(is_quiet(kScratch, kScratch, Touches::TenantMemory));
  STATIC_REQUIRE_FALSE(is_quiet(kScratch, kScratch, Touches::WeightsAndScratch));
  STATIC_REQUIRE_FALSE(is_quiet(busy(3), busy(3), Touches::TenantMemory));
  STATIC_REQUIRE(is_quiet(busy(3), kIdle, Touches::TenantMemory));
  STATIC_REQUIRE(is_quiet(busy(3), busy(4), Touches::TenantMemory));
}
