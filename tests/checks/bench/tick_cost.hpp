/// The cost of one tick of the scheduler, without an engine.
#pragma once

#include <cstdint>

#include "tests/checks/bench/statistics.hpp"

namespace leasehold::bench {

struct TickLoad {
  std::uint32_t tenants = 50;
  std::uint32_t running = 64;
  std::uint32_t waiting = 1000;
  std::uint32_t ticks = 2000;
};

/// CPU times of a tick, in µs.
struct TickTimes {
  Distribution schedule;  ///< `admit` and `plan`.
  Distribution commit;    ///< The commits, which hash full blocks, and the events.
};

/// Each tick ends some texts of 1 to 128 tokens, which waiting requests replace. As many new
/// requests arrive outside the measured time. No two texts are equal.
TickTimes measure_tick_us(const TickLoad& load);

}  // namespace leasehold::bench
