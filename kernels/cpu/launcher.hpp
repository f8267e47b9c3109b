/// Runs tiles through gates: every tile is one unit of the thread that takes it.
///
/// Threads: `run` from the engine thread only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ipc/segment/thread_gate.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/launch_rules.hpp"

namespace leasehold {

class Launcher {
 public:
  /// One gate per thread; the first belongs to the caller. Throws the exceptions of ThreadPool.
  explicit Launcher(std::vector<ThreadGate> gates)
      : thread_states_(gates.begin(), gates.end()),
        pool_(static_cast<std::uint32_t>(gates.size())) {}

  std::uint32_t threads() const { return pool_.threads(); }

  /// Calls `tile(permit, thread, index)` for each index in [0, n_tiles), each in its own unit,
  /// while any sequence is live.
  template <class Tile>
  LaunchStatus run(const LaunchContext& context, UnitLabel label, std::uint32_t n_tiles,
                   Tile&& tile) {
    const GateSet& gates = *context.gates;
    for (ThreadState& thread_state : thread_states_) thread_state.live = gates.all();
    pool_.run(n_tiles, [&](std::uint32_t thread, std::uint32_t index) {
      ThreadState& thread_state = thread_states_[thread];
      thread_state.live &= thread_state.gate.run(
          gates, label, [&](const LaunchPermit& permit) { tile(permit, thread, index); });
      return thread_state.live != 0;  // a thread without live sequences takes no more tiles
    });
    SequenceMask live = gates.all();
    for (const ThreadState& thread_state : thread_states_) live &= thread_state.live;
    return {live};
  }

  std::vector<std::uint64_t> units_run() const {
    std::vector<std::uint64_t> counts;
    for (const ThreadState& thread_state : thread_states_)
      counts.push_back(thread_state.gate.units_run());
    return counts;
  }

 private:
  /// Aligned to cache lines, so threads poll and count without sharing lines.
  struct alignas(kCacheLineBytes) ThreadState {
    explicit ThreadState(const ThreadGate& g) : gate(g) {}
    ThreadGate gate;
    SequenceMask live = 0;  // live in every unit that this thread ran in the current launch
  };

  std::vector<ThreadState> thread_states_;
  ThreadPool pool_;
};

}  // namespace leasehold
