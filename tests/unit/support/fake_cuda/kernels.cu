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

LEASEHOLD_KERNEL_EARLY(lh_trace_two_reads, TwoReads, 32, 1) {
  device::trigger_next_kernel();
  if (threadIdx.x == 0) p.to[0] = *p.from;
  device::await_previous_kernel();
  if (threadIdx.x == 0) p.to[1] = *p.from;
}

/// Some threads wait for threads that never arrive.
LEASEHOLD_KERNEL(lh_trace_stuck, Entry, 32) {
  if (threadIdx.x < p.value) __syncthreads();
}

LEASEHOLD_KERNEL(lh_trace_shared, Entry, 32) {
  device::dynamic_shared()[0] = std::byte{1};
}

}  // namespace leasehold::fake_cuda
