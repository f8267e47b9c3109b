/// What the gate costs: nanoseconds of one announce + poll + clear, and how many a step needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

/// Passes `units` empty units through a gate wired as a worker's, over a real table and line.
/// Returns the time of one beyond that of the same loop without the gate: the median of several
/// interleaved rounds. Errors: OutOfMemory.
Result<double> measure_gate_ns(std::uint64_t units);

struct StepCost {
  double units = 0;    ///< Polls of one step.
  double step_us = 0;  ///< Median of the time the thread ran.
};

struct StepConfig {
  std::string model_path;
  std::uint32_t steps = 10;  ///< After one that warms up.
};

/// Decode steps of one sequence on one thread of this process, with the worker's own forward pass
/// and gates. Run under `valgrind --tool=callgrind` it counts instructions; two runs differ by
/// their steps alone. Errors: those of reading the model.
Result<StepCost> measure_step(const StepConfig& config);

}  // namespace leasehold::bench
