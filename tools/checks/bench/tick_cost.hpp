/// What one tick of the scheduler costs, without an engine.
#pragma once

#include <cstdint>

#include "tools/checks/bench/statistics.hpp"

namespace leasehold::bench {

struct TickLoad {
  std::uint32_t tenants = 50;
  std::uint32_t running = 64;
  std::uint32_t waiting = 1000;
  std::uint32_t ticks = 2000;
};

/// CPU time of `admit`, `plan` and the commits of a tick, in µs. Each tick ends some texts, which
/// waiting requests replace; as many new ones arrive outside the measured time.
Distribution measure_tick_us(const TickLoad& load);

}  // namespace leasehold::bench
