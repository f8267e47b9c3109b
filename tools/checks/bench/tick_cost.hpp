/// Measures what one tick of the scheduler costs, without an engine.
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

/// CPU times of a tick, in µs.
struct TickTimes {
  Distribution schedule;  ///< Time of `admit` and `plan`.
  Distribution commit;    ///< Time of the commits, which hash full blocks, and of the events.
};

/// Texts have 1 to 128 tokens. Each tick ends some texts, and waiting requests replace them; the
/// same number of new requests arrives outside the measured time. No two texts are equal.
TickTimes measure_tick_us(const TickLoad& load);

}  // namespace leasehold::bench
