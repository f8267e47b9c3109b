#include "worker/schedule/memory/swap_costs.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kRow_ns = 1000;

bool is_cheaper(const SwapCosts& costs, std::uint64_t bytes, std::uint32_t rows) {
  return costs.is_swap_cheaper({.copied_bytes = bytes, .rows_to_repeat = rows}, kRow_ns);
}

}  // namespace

TEST_CASE("swap costs: before the first copy a byte takes what 1 GiB/s takes") {
  const SwapCosts costs;
  // 1 MiB takes 976.6 µs at that rate.
  CHECK(is_cheaper(costs, kMiB, 977));
  CHECK_FALSE(is_cheaper(costs, kMiB, 976));
}

TEST_CASE("swap costs: without the time of a row nothing is swapped") {
  const SwapCosts costs;
  CHECK_FALSE(costs.is_swap_cheaper({.copied_bytes = 1, .rows_to_repeat = 1000}, std::nullopt));
}

TEST_CASE("swap costs: measured copies decide") {
  SwapCosts costs;
  for (int i = 0; i < 100; ++i) costs.note_copy(Duration(100'000), kMiB);
  CHECK(is_cheaper(costs, kMiB, 101));
  CHECK_FALSE(is_cheaper(costs, kMiB, 99));
  for (int i = 0; i < 100; ++i) costs.note_copy(Duration(4'000'000), kMiB);
  CHECK_FALSE(is_cheaper(costs, kMiB, 3'900));
  CHECK(is_cheaper(costs, kMiB, 4'001));
}

TEST_CASE("swap costs: one stalled copy counts as four times the expected time at most") {
  SwapCosts costs;
  costs.note_copy(std::chrono::seconds(10), kMiB);
  CHECK(is_cheaper(costs, kMiB, 1'400));  // 1 + (4 - 1) / 8 times the first rate
}

TEST_CASE("swap costs: a copy without a duration or without bytes says nothing") {
  SwapCosts costs;
  for (int i = 0; i < 100; ++i) {
    costs.note_copy(Duration::zero(), kMiB);
    costs.note_copy(Duration(1'000'000'000), 0);
  }
  CHECK(is_cheaper(costs, kMiB, 977));
  CHECK_FALSE(is_cheaper(costs, kMiB, 976));
}

TEST_CASE("swap costs: slow copies do not end swapping for ever") {
  SwapCosts costs;
  for (int i = 0; i < 100; ++i) costs.note_copy(Duration(100'000'000), kMiB);
  REQUIRE_FALSE(is_cheaper(costs, kMiB, 10'000));
  for (int i = 0; i < 100; ++i) costs.note_dropped();
  CHECK(is_cheaper(costs, kMiB, 978));

  SwapCosts fast;
  for (int i = 0; i < 100; ++i) fast.note_copy(Duration(100'000), kMiB);
  fast.note_dropped();
  CHECK(is_cheaper(fast, kMiB, 101));
}

}  // namespace leasehold
