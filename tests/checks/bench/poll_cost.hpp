/// The cost of the gate: nanoseconds of one announce + poll + clear, and the number of these per
/// step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

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

}  // namespace leasehold::bench
