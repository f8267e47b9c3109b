/// The smallest costs of computing: nanoseconds of one announce + poll + clear of the gate, the
/// number of these per step, and a launch of the CPU backend's thread pool besides its work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tests/checks/bench/figures.hpp"

namespace leasehold::bench {

/// Passes `units` empty units through a gate like a worker's, with a real table and segment.
/// Returns the extra ns per unit compared with the same loop without the gate, the median of
/// interleaved rounds. Errors: OutOfMemory.
Result<double> measure_gate_ns(std::uint64_t units);

struct StepCost {
  double units = 0;    ///< Polls per step.
  double step_us = 0;  ///< Median CPU time of the thread per step.
};

inline constexpr std::uint32_t kDecodeSteps = 10;

/// Runs one decode step of one sequence to warm up, then measures `steps`, on this thread with the
/// worker's forward pass and gates. To count instructions, run it twice under `valgrind
/// --tool=callgrind`: runs with different `steps` differ by the cost of these steps. Errors: those
/// of reading the model.
Result<StepCost> measure_step(const std::string& model_path, std::uint32_t steps);

/// Wall-clock times of `launches` launches of each kind in turn, on this thread and `threads` - 1
/// others. "empty_us": a launch of one empty tile per thread. "meeting_us": a launch of one tile of
/// equal work per thread, minus the work, which is the cost of meeting at its end. Errors:
/// SystemError if the system has no more threads.
Result<Samples> measure_launch(std::uint32_t threads, std::uint32_t launches);

}  // namespace leasehold::bench
