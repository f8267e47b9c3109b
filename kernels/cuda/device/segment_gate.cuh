/// What both kinds of segment gates do: read the mirror and report to the host what they saw.
#pragma once

#include "kernels/cuda/device/gate.cuh"
#include "kernels/cuda/device/step_params.hpp"

namespace leasehold::device {

/// Called by one thread. Reports even if the engine is stopped, because the host waits for `seen`.
/// Returns whether the next segment may run.
__device__ __forceinline__ bool report_segment(const SegmentGateParams& p) {
  const bool is_stopped = engine_is_stopped(p.gate);
  const std::uint64_t epoch = load_acquire(&p.gate.mirror->epoch);
  store_to_host(p.seen, epoch << 32 | p.segment);
  return !is_stopped;
}

}  // namespace leasehold::device
