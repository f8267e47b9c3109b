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

__device__ __forceinline__ std::uint32_t row_count(const KernelGate& gate) {
  return gate.step->n_rows;
}

__device__ __forceinline__ bool row_is_live(const KernelGate& gate, std::uint32_t row) {
  return (load_acquire(&gate.mirror->live) >> gate.rows[row].sequence & 1) != 0;
}

}  // namespace leasehold::device
