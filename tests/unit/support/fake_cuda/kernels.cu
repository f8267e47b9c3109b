/// Kernels that record when they ran.
#include "tests/unit/support/fake_cuda/kernels.hpp"

#include "kernels/cuda/device/simt.cuh"

namespace leasehold::fake_cuda {

LEASEHOLD_KERNEL(lh_trace_append, Entry, 32) {
  if (threadIdx.x == 0) p.log[1 + atomicAdd(&p.log[0], 1u)] = p.value;
}

LEASEHOLD_KERNEL(lh_trace_condition, Setting, 32) {
  if (threadIdx.x == 0) device::set_graph_condition(p.handle, p.value);
}

/// Some threads wait for threads that never arrive.
LEASEHOLD_KERNEL(lh_trace_stuck, Entry, 32) {
  if (threadIdx.x < p.value) __syncthreads();
}

LEASEHOLD_KERNEL(lh_trace_shared, Entry, 32) {
  device::dynamic_shared()[0] = std::byte{1};
}

}  // namespace leasehold::fake_cuda
