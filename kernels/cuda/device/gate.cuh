/// How a kernel reads the gate. Every kernel begins with `engine_is_stopped`. A kernel that reaches
/// tenant memory calls `row_is_live` before it touches memory of a row. A kernel may load the
/// step's own words before it checks the gate, so that the loads overlap: these words are not
/// tenant memory.
///
/// The body of a LEASEHOLD_KERNEL_EARLY may run while the previous kernel still runs. Its rules:
///   1. Every thread calls `await_previous_kernel` before it ends. Otherwise the next kernel's wait
///      does not cover the kernel before this one.
///   2. Before that call a thread reads its parameters, weights and the mirror only, because the
///      previous kernel may still write everything else; and it writes shared memory only.
///   3. A thread reaches tenant memory only after a read of the mirror that follows the call. The
///      engine's stop is read before the first bulk copy, and again after the call.
///   4. Bulk copies in flight are awaited before the block ends, also after a stop: the next
///      block's shared memory may be at the same place.
///   5. Blocks exchange results through `arrive` and `load_arrived` only. No other code has
///      atomics, fences, volatile accesses or PTX of its own.
/// The test runner checks rules 1, 2 and 4 in each run, tests with a mirror that changes check rule
/// 3, and a rule of the source tree (tests/tidy/kernel_rules.hpp) checks rule 5.
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
