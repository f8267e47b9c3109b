#include "tests/checks/bench/launch_cost.hpp"

#include <catch2/catch.hpp>

#include "tests/support/required.hpp"

namespace leasehold::bench {

TEST_CASE("launch cost: every launch is measured, whatever the number of threads") {
  const std::uint32_t threads = GENERATE(1, 2, 3);
  const LaunchCost cost = testing::required(measure_launch(threads, 20));
  CHECK(cost.empty_us.count == 20);
  CHECK(cost.empty_us.p50 > 0);
  CHECK(cost.meeting_us.count == 20);
}

}  // namespace leasehold::bench
