/// The gate as every kernel receives it. Plain data, the same for the host compiler and nvcc.
/// C++20-clean.
///
/// The mirror is a copy of the lease state on the device. The host writes it before a step whose
/// live sequences differ, and as soon as a poll sees a change; every kernel reads it when it
/// begins. So work queued before a revocation skips the rows of the revoked lease.
#pragma once

#include <cstdint>

#include "kernels/op_args.hpp"

namespace leasehold::device {

/// In device memory; only the host's copies write it.
struct GateMirror {
  std::uint64_t live;            ///< Bit i: sequence i of the step is live.
  std::uint32_t engine_stopped;  ///< If not 0, kernels return at once.
  std::uint32_t epoch;           ///< Rises with every write, and wraps; kernels report it.
};

/// The step's rows, in device memory at an address that is the same for every step.
struct DeviceStep {
  std::uint32_t n_rows;  ///< Rows of this step; a launch may be planned for more.
  std::uint32_t n_sequences;
  std::uint32_t n_logit_rows;
  std::uint32_t longest;       ///< Positions of the longest sequence, including its newest.
  std::uint32_t state_blocks;  ///< Of a copy of each sequence's recurrent state.
};

/// The first member of every kernel's parameters.
struct KernelGate {
  const GateMirror* mirror;
  const DeviceStep* step;
  const RowRef* rows;  ///< [n_rows]
  /// Where the launch reports to the host which epoch it has seen, or null (report_tenant_seen).
  std::uint64_t* tenant_seen = nullptr;
};

}  // namespace leasehold::device
