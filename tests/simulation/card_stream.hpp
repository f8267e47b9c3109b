/// What a worker has put into a card's streams, and the card working on it, later and by itself.
///
/// Two streams, as of the product's launcher: launches, one after the other, and beside them writes
/// of the gate's mirror. A launch may wait for a write; each kernel reads the mirror when it
/// begins. A launch of several segments is a graph: before each segment a gate reads the mirror and
/// says what it saw.
///
/// Lifetime: the worker's; with its end everything queued is over. Threads: one.
#pragma once

#include <deque>

#include "ipc/segment/gate_set.hpp"
#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {

/// A sequence of a launch's step.
struct LaunchRow {
  LeaseId lease;
  std::vector<ExtentId> extents;
};

struct Launch {
  std::uint64_t called_at = 0;  ///< Step in which its thread came to the gate.
  Touches touches{};
  LeaseId engine;
  std::vector<LaunchRow> rows;
  SequenceMask live = 0;            ///< As the gate said.
  bool asks_for_rows = true;        ///< False: writes for all of them unless the engine is stopped.
  std::uint32_t segments = 1;       ///< More: a graph with a gate before each.
  std::uint32_t waits_for = 0;      ///< Epoch of the mirror.
  std::vector<LeaseId> worked_for;  ///< After their words went down.
};

class CardStream {
 public:
  CardStream(Machine& machine, Judge& judge, Coverage& coverage, const Worker& worker)
      : machine_(machine), judge_(judge), coverage_(coverage), worker_(worker) {}

  void launch(Launch launch) { launches_.push_back(std::move(launch)); }
  void write_mirror(std::uint32_t epoch, SequenceMask live) { writes_.push_back({epoch, live}); }

  /// What a worker's launcher sees of it.
  std::uint64_t finished_count() const { return finished_; }
  std::uint32_t seen_epoch() const { return seen_epoch_; }
  bool is_idle() const { return launches_.empty(); }

  /// The card does one thing; false when it has nothing to do.
  bool run();

 private:
  struct Mirror {
    std::uint32_t epoch = 0;
    SequenceMask live = 0;
  };
  enum class Stage : std::uint8_t { Waits, Gate, Begins, Works };

  bool run_launch();
  void begin_kernel(Launch& launch);
  void touch(Launch& launch);
  void end_segment();

  Machine& machine_;
  Judge& judge_;
  Coverage& coverage_;
  const Worker& worker_;
  std::deque<Launch> launches_;
  std::deque<Mirror> writes_;
  Mirror mirror_;
  std::uint64_t finished_ = 0;
  std::uint32_t seen_epoch_ = 0;
  Stage stage_ = Stage::Waits;  ///< Of the first launch.
  std::uint32_t segment_ = 0;   ///< Likewise.
  SequenceMask working_ = 0;    ///< The kernel at work does so for these.
};

}  // namespace leasehold::simulation
