#include "tests/checks/bench/serve_bench.hpp"

#include <catch2/catch.hpp>

namespace leasehold::bench {

TEST_CASE("tick cost: every tick is measured under the wanted load") {
  const Samples ticks = measure_tick_us({.tenants = 3, .running = 8, .waiting = 30, .ticks = 50});
  for (const char* part : {"schedule", "commit"}) {
    CHECK(ticks.at(part).size() == 50);
    CHECK(figure_of(ticks, part) > 0);
  }
}

}  // namespace leasehold::bench
