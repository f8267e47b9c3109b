/// How a kernel asks the gate. Every kernel begins with `engine_is_stopped`, and every one that
/// reaches tenant memory asks `row_is_live` before it touches a row's. The step's own words are
/// nobody else's: those that a kernel needs at once it may ask for first, so that they and the gate
/// are on their way together.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/simt.cuh"

namespace leasehold::device {

__device__ __forceinline__ bool engine_is_stopped(const KernelGate& gate) {
  return load_acquire(&gate.mirror->engine_stopped) != 0;
}

__device__ __forceinline__ std::uint32_t row_count(const KernelGate& gate) {
  return gate.step->n_rows;
}

__device__ __forceinline__ bool row_is_live(const KernelGate& gate, std::uint32_t row) {
  return (load_acquire(&gate.mirror->live) >> gate.rows[row].sequence & 1) != 0;
}

}  // namespace leasehold::device
