/// How a worker launches on its card, in the order of the product's launcher
/// (kernels/cuda/launcher.hpp) and with its SettleWatch. The gate is the real one and may pause
/// between any two accesses.
///
/// Lifetime: the worker's; worker segment, counters and stop flags outlive it. Threads: the
/// engine's fiber; `when_settled` any.
#pragma once

#include "ipc/segment/thread_gate.hpp"
#include "kernels/cuda/settle_watch.hpp"
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

  /// Writes the sequences that the gate finds live into the mirror.
  void begin(const GateSet& set);
  /// One unit: queues its launch when any sequence is still live.
  void unit(const GateSet& set, UnitLabel label, const Launch& launch);
  /// Waits until the stream is empty, polling meanwhile.
  void wait_all(const GateSet& set);
  /// Writes the records of a commit from within its unit, even for sequences revoked by now, and
  /// waits for the write.
  void write_records(const Launch& launch);

  /// For `lease.settle`: calls back when every launch begun before this call is over.
  void when_settled(std::move_only_function<void()> callback);
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
  cuda::SettleWatch watch_;
  std::uint32_t epoch_ = 0;
  SequenceMask mirrored_live_ = 0;
  CardEvent settled_by_ = CardEvent::SettledImmediately;  ///< Reported while a callback runs.
};

}  // namespace leasehold::simulation
