/// What every kernel is told of the gate, beside what it computes. Plain data, the same for the
/// host's compiler and nvcc. C++20-clean.
///
/// The mirror is the lease words' shadow on the device: the host writes it before a step and again
/// the moment a poll has seen a change, and every kernel reads it when it begins. So work that was
/// queued before a flip runs empty for whom the flip was about.
#pragma once

#include <cstdint>

#include "kernels/op_args.hpp"

namespace leasehold::device {

/// In device memory, written by copies of the host alone.
struct GateMirror {
  std::uint64_t live;            ///< Bit i: sequence i of the step may be worked for.
  std::uint32_t engine_stopped;  ///< Not 0: no kernel does anything.
  std::uint32_t epoch;           ///< Moves with every change; what a segment says it has seen.
};

/// The step's rows, in device memory at an address that stays from step to step.
struct DeviceStep {
  std::uint32_t n_rows;  ///< Of this step; a launch may have been made for more.
  std::uint32_t n_sequences;
  std::uint32_t n_logit_rows;
  std::uint32_t longest;  ///< Positions of the longest sequence, its newest included.
};

/// First member of every kernel's parameters.
struct KernelGate {
  const GateMirror* mirror;
  const DeviceStep* step;
  const RowRef* rows;  ///< [n_rows]
};

}  // namespace leasehold::device
