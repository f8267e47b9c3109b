/// Executes AMX instructions on a CPU without AMX: each raises SIGILL there, whose handler decodes
/// it, executes it with EmulatedTiles and continues behind it. Tests the code of HardwareTiles.
#pragma once

#include <csignal>
#include <cstdint>

namespace leasehold::testing {

/// The tile instructions executed by handlers so far.
std::uint64_t trapped_instructions();

/// Lifetime: the handler is installed while it exists; one at a time. Other illegal instructions
/// end the process without a report. Operands relative to RIP are not decoded: the test ends.
class TrappedTiles {
 public:
  TrappedTiles();
  ~TrappedTiles();
  TrappedTiles(const TrappedTiles&) = delete;
  TrappedTiles& operator=(const TrappedTiles&) = delete;

 private:
  struct sigaction before_{};
};

}  // namespace leasehold::testing
