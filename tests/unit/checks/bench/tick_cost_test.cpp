#include "tests/checks/bench/tick_cost.hpp"

#include <catch2/catch.hpp>

namespace leasehold::bench {

TEST_CASE("tick cost: every tick is measured under the wanted load") {
  const TickTimes ticks = measure_tick_us({.tenants = 3, .running = 8, .waiting = 30, .ticks = 50});
  CHECK(ticks.schedule.count == 50);
  CHECK(ticks.schedule.p50 > 0);
  CHECK(ticks.commit.count == 50);
  CHECK(ticks.commit.p50 > 0);
}

}  // namespace leasehold::bench
