/// A worker's launch door to its card, in the order of the product's (kernels/cuda/launcher.hpp)
/// and with its DrainWatch; the gate is the real one and may stand still between any two accesses.
///
/// Lifetime: the worker's; line, counters and stop board outlive it. Threads: the engine's fiber;
/// `when_drained` any.
#pragma once

#include "ipc/segment/thread_gate.hpp"
#include "kernels/cuda/drain_watch.hpp"
#include "tests/simulation/card_stream.hpp"
#include "tests/simulation/memory.hpp"
#include "tests/simulation/model_broker.hpp"

namespace leasehold::simulation {

class CardLauncher {
 public:
  using Gate = BasicThreadGate<SimulatedMemory>;

  CardLauncher(Dependencies deps, Worker& worker, Gate& gate, UnitState& unit)
      : deps_(deps),
        worker_(worker),
        gate_(gate),
        unit_(unit),
        stream_(deps.machine, deps.judge, deps.coverage, worker) {}

  /// Whom the gate finds live is written into the mirror.
  void begin(const GateSet& set);
  /// One unit: what it launches goes into the stream when anybody is left.
  void unit(const GateSet& set, UnitLabel label, const Launch& launch);
  /// Waits for the stream's end, polling meanwhile.
  void wait_all(const GateSet& set);
  /// Records of a commit, from within its unit: written whoever is dead by now, and waited for.
  void write_records(const Launch& launch);

  /// `lease.settle`: tells when all that was begun before is over.
  void when_drained(std::move_only_function<void()> callback);
  CardStream& stream() { return stream_; }

 private:
  void write_mirror(SequenceMask live);
  bool collect_finished();
  void poll(const GateSet& set);

  Dependencies deps_;
  Worker& worker_;
  Gate& gate_;
  UnitState& unit_;
  CardStream stream_;
  cuda::DrainWatch watch_;
  std::uint32_t epoch_ = 0;
  SequenceMask mirrored_live_ = 0;
  CardEvent settled_by_ = CardEvent::SettledImmediately;  ///< If somebody is callback now.
};

}  // namespace leasehold::simulation
