/// Runs tiles through gates: every tile is one unit of the thread that takes it.
///
/// Threads: `run` and `run_after` from the engine thread only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ipc/segment/thread_gate.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/launch_rules.hpp"

namespace leasehold {

/// A computation that each thread runs for itself before its first tile of a launch, in a separate
/// unit: `compute(permit, thread)`. A thread that takes no tile runs no prologue. Other threads may
/// already multiply while a prologue runs.
template <class Compute>
struct Prologue {
  UnitLabel label;
  Compute compute;
};

class Launcher {
 public:
  /// One gate per thread; the first belongs to the caller. Throws the exceptions of ThreadPool.
  explicit Launcher(std::vector<ThreadGate> gates, const PoolNodes& nodes = {})
      : thread_states_(gates.begin(), gates.end()),
        pool_(static_cast<std::uint32_t>(gates.size()), nodes) {}

  std::uint32_t threads() const { return pool_.threads(); }
  /// The number of threads on the node of `thread`, including `thread`.
  std::uint32_t threads_on_node_of(std::uint32_t thread) const {
    return pool_.threads_on_node_of(thread);
  }

  /// Calls `tile(permit, thread, index)` for each tile of the passes, each in its own unit, while
  /// any sequence is live.
  template <class Tile>
  LaunchStatus run(const LaunchContext& context, UnitLabel label, const TilePasses& tiles,
                   Tile&& tile) {
    return launch(*context.gates, label, tiles, tile, [](ThreadState&, std::uint32_t) {});
  }

  /// Like `run`, but each thread runs the prologue before its first tile. Tiles must not write what
  /// prologues read.
  template <class Compute, class Tile>
  LaunchStatus run_after(const Prologue<Compute>& prologue, const LaunchContext& context,
                         UnitLabel label, const TilePasses& tiles, Tile&& tile) {
    const GateSet& gates = *context.gates;
    return launch(gates, label, tiles, tile, [&](ThreadState& state, std::uint32_t thread) {
      state.live &= state.gate.run(gates, prologue.label, [&](const LaunchPermit& permit) {
        prologue.compute(permit, thread);
      });
    });
  }

  std::uint64_t launches_run() const { return launch_; }
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
    std::uint64_t launch = 0;  // number of the last launch in which this thread took a tile
    SequenceMask live = 0;     // sequences live in every unit that this thread ran in that launch
  };

  /// `begin(state, thread)` precedes a thread's first tile.
  template <class Tile, class Begin>
  LaunchStatus launch(const GateSet& gates, UnitLabel label, const TilePasses& tiles, Tile& tile,
                      Begin&& begin) {
    ++launch_;
    pool_.run(tiles, [&](std::uint32_t thread, std::uint32_t index) {
      ThreadState& thread_state = thread_states_[thread];
      if (thread_state.launch != launch_) {
        thread_state.launch = launch_;
        thread_state.live = gates.all();
        begin(thread_state, thread);
        if (thread_state.live == 0) return false;
      }
      thread_state.live &= thread_state.gate.run(
          gates, label, [&](const LaunchPermit& permit) { tile(permit, thread, index); });
      return thread_state.live != 0;  // a thread without live sequences takes no more tiles
    });
    SequenceMask live = gates.all();
    for (const ThreadState& thread_state : thread_states_)
      if (thread_state.launch == launch_) live &= thread_state.live;
    return {live};
  }

  std::vector<ThreadState> thread_states_;
  ThreadPool pool_;
  std::uint64_t launch_ = 0;  // number of the running launch; written while no worker is busy
};

}  // namespace leasehold
