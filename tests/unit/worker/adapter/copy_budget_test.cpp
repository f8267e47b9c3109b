#include "worker/adapter/copy_budget.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytesPerMs = 5'000'000;  // the speed of the memory

Duration time_for(std::uint64_t bytes) {
  return Duration(static_cast<std::int64_t>(bytes * 1'000'000 / kBytesPerMs));
}

}  // namespace

TEST_CASE("copy budget: copies take at most the share of the steps, and nearly all of it") {
  const Duration step = GENERATE(Duration(50us), Duration(2ms), Duration(40ms));
  CopyBudget budget;
  for (int i = 0; i < 50; ++i) {  // learns the speed
    const std::uint64_t bytes = budget.after_step(step);
    if (bytes > 0) budget.copied(bytes, time_for(bytes));
  }
  Duration copying{};
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t bytes = budget.after_step(step);
    if (bytes == 0) continue;
    budget.copied(bytes, time_for(bytes));
    copying += time_for(bytes);
  }
  const double share =
      static_cast<double>(copying.count()) / static_cast<double>((100 * step).count());
  CHECK(share <= CopyBudget::kShare * 1.02);
  CHECK(share >= CopyBudget::kShare * 0.5);
}

TEST_CASE("copy budget: a pause saves no time for a long copy") {
  CopyBudget budget;
  budget.copied(kBytesPerMs, 1ms);
  const std::uint64_t once = budget.after_step(10ms);
  for (int i = 0; i < 1'000; ++i) (void)budget.after_step(10ms);

  CHECK(budget.after_step(10ms) == once);
}

TEST_CASE("copy budget: a copy that was slow makes the next ones smaller") {
  CopyBudget budget;
  const std::uint64_t before = budget.after_step(10ms);
  budget.copied(before, 100 * time_for(before));
  (void)budget.after_step(10ms);

  CHECK(budget.after_step(10ms) < before);
}

}  // namespace leasehold
