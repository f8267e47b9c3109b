#include "tools/checks/bench/tick_cost.hpp"

#include <catch2/catch.hpp>

namespace leasehold::bench {

TEST_CASE("tick cost: every tick is measured under the wanted load") {
  const Distribution ticks =
      measure_tick_us({.tenants = 3, .running = 8, .waiting = 30, .ticks = 50});
  CHECK(ticks.count == 50);
  CHECK(ticks.p50 > 0);
}

}  // namespace leasehold::bench
