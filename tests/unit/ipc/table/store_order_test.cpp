// The order in which a broker's stores become visible. A reader relies on it by loading in the
// opposite order.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <ranges>

#include "tests/unit/ipc/table/stepped_child.hpp"

using namespace leasehold;
using LeaseChange = LeaseTable::LeaseChange;

namespace {

constexpr WorkerId kSteppedWorker{3};
constexpr std::uint32_t kLeases = 12;

auto leases() {
  return std::views::iota(0u, kLeases) |
         std::views::transform([](std::uint32_t slot) { return LeaseId{slot, 5}; });
}

void grant_all(LeaseTable& table) {
  for (const LeaseId lease : leases()) table.grant(lease, TimePoint{9'000});
}

void revoke_all(LeaseTable& table) {
  std::array<LeaseChange, kLeases> flips{};
  std::ranges::transform(leases(), flips.begin(), [](LeaseId lease) {
    return LeaseChange{lease, LeaseState::Revoked, RevokeReason::Operator};
  });
  table.store_words(kSteppedWorker, flips, TimePoint{7'000});
}

/// Warns where the machine forbids ptrace; the other tests of this folder need none.
bool can_step(const testing::SteppedBroker& broker) {
  if (!broker.can_step()) WARN("ptrace is forbidden here: the order of stores is not checked");
  return broker.can_step();
}

}  // namespace

TEST_CASE("lease table: a reader that sees the moved counter finds every word stored") {
  testing::SteppedBroker broker(grant_all, revoke_all);
  if (!can_step(broker)) return;
  std::uint64_t last_count = 1;
  bool always_after_the_words = true;
  const std::uint64_t steps = broker.step_through([&](const TableReader& reader) {
    last_count = reader.revocations(kSteppedWorker).load();
    const bool all_down = std::ranges::all_of(leases(), [&](LeaseId lease) {
      return reader.word_of(lease).state() == LeaseState::Revoked;
    });
    always_after_the_words &= last_count == 1 || all_down;
  });
  CHECK(always_after_the_words);
  CHECK(last_count == 2);
  CHECK(steps > 2 * kLeases);
}

TEST_CASE("lease table: a reader that sees a revoked word finds its flip time") {
  testing::SteppedBroker broker(grant_all, revoke_all);
  if (!can_step(broker)) return;
  bool always_stamped = true;
  broker.step_through([&](const TableReader& reader) {
    always_stamped &= std::ranges::all_of(leases(), [&](LeaseId lease) {
      return reader.word_of(lease).state() == LeaseState::Live ||
             reader.word_stored_at(lease) == TimePoint{7'000};
    });
  });
  CHECK(always_stamped);
}

TEST_CASE("lease table: a reader that sees a grant finds its deadline and a clean slot") {
  const auto fence_then_nothing = [](LeaseTable& table) {
    table.grant({2, 5}, TimePoint{9'000});
    table.set_drain_deadline({2, 5}, TimePoint{8'000});
    table.store_words(kSteppedWorker,
                      std::array{LeaseChange{{2, 5}, LeaseState::Fenced, RevokeReason::Released}},
                      TimePoint{7'000});
  };
  testing::SteppedBroker broker(fence_then_nothing,
                                [](LeaseTable& table) { table.grant({2, 6}, TimePoint{20'000}); });
  if (!can_step(broker)) return;
  bool always_complete = true;
  bool was_granted = false;
  broker.step_through([&](const TableReader& reader) {
    const LeaseId next{2, 6};
    if (reader.word_of(next).state() != LeaseState::Live) return;
    was_granted = true;
    always_complete &= reader.deadline(next) == TimePoint{20'000} &&
                       reader.drain_deadline(next) == TimePoint{0} &&
                       reader.word_stored_at(next) == TimePoint{0};
  });
  CHECK(was_granted);
  CHECK(always_complete);
}
