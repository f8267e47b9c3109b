/// How a kernel reads the gate. Every kernel begins with `engine_is_stopped`. A kernel that reaches
/// tenant memory calls `row_is_live` before it touches memory of a row. A kernel may load the
/// step's own words before it checks the gate, so that the loads overlap: these words are not
/// tenant memory.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/simt.cuh"

namespace leasehold::device {

__device__ __forceinline__ bool engine_is_stopped(const KernelGate& gate) {
  return load_acquire(&gate.mirror->engine_stopped) != 0;
}

/// Reports the mirror's epoch to the host if the launch is one that reports. No block of such a
/// launch reaches tenant memory: earlier launches are over, and later ones read this epoch or a
/// newer one before they do. Called by one thread of each block.
__device__ __forceinline__ void report_tenant_seen(const KernelGate& gate) {
  if (gate.tenant_seen == nullptr || (blockIdx.x | blockIdx.y | blockIdx.z) != 0) return;
  store_to_host(gate.tenant_seen, load_acquire(&gate.mirror->epoch));
}

__device__ __forceinline__ std::uint32_t row_count(const KernelGate& gate) {
  return gate.step->n_rows;
}

__device__ __forceinline__ bool row_is_live(const KernelGate& gate, std::uint32_t row) {
  return (load_acquire(&gate.mirror->live) >> gate.rows[row].sequence & 1) != 0;
}

}  // namespace leasehold::device
