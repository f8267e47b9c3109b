/// What a worker has queued in a card's streams. The card works on it later, by itself.
///
/// Two streams, as in the product's launcher: launches in order, and beside them writes of the
/// gate's mirror. A launch may wait for a write; each kernel reads the mirror when it begins. A
/// launch of several segments is a graph: before each segment a gate reads the mirror and reports
/// what it saw.
///
/// Lifetime: the worker's; everything queued ends with it. Threads: one.
#pragma once

#include <deque>

#include "ipc/segment/gate_set.hpp"
#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {

/// A sequence in the step of a launch.
struct LaunchRow {
  LeaseId lease;
  std::vector<ExtentId> extents;
};

struct Launch {
  std::uint64_t called_at = 0;  ///< Step in which its thread reached the gate.
  Touches touches{};
  LeaseId engine;
  std::vector<LaunchRow> rows;
  SequenceMask live = 0;            ///< As the gate returned it.
  bool asks_for_rows = true;        ///< False: writes for all rows unless the engine is stopped.
  std::uint32_t segments = 1;       ///< More than 1: a graph with a gate before each segment.
  std::uint32_t waits_for = 0;      ///< Epoch of the mirror.
  std::vector<LeaseId> worked_for;  ///< Leases it worked for after their revocation.
};

class CardStream {
 public:
  CardStream(Machine& machine, Judge& judge, Coverage& coverage, const Worker& worker)
      : machine_(machine), judge_(judge), coverage_(coverage), worker_(worker) {}

  void launch(Launch launch) { launches_.push_back(std::move(launch)); }
  void write_mirror(std::uint32_t epoch, SequenceMask live) { writes_.push_back({epoch, live}); }

  /// Launches finished, as the worker's launcher sees it.
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
  std::uint32_t segment_ = 0;   ///< Of the first launch.
  SequenceMask working_ = 0;    ///< Sequences that the running kernel works for.
};

}  // namespace leasehold::simulation
