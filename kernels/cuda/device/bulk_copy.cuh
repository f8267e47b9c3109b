/// Bulk copies to shared memory and the barriers that count them, as inline PTX (PTX ISA, mbarrier
/// and cp.async.bulk). Only sm_90 and newer cards have both; a kernel that reaches them on another
/// card traps. The tests' version is in tests/support/simt/simt.hpp; simt.cuh includes the right
/// one.
///
/// The order in a kernel: one thread calls barrier_init for each barrier, then __syncthreads. One
/// thread calls barrier_expect and then bulk_copy; each thread that reads the copies calls
/// barrier_wait first. Threads that have read call barrier_arrive on a second barrier, which the
/// copying thread awaits before it copies to the same place again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/shared_barrier.hpp"

namespace leasehold::device {

__device__ __forceinline__ std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// Begins phase 0, in which `arrivals` threads arrive, as in each later phase. One thread calls it;
/// a __syncthreads must follow before another thread uses the barrier.
__device__ __forceinline__ void barrier_init(SharedBarrier* barrier, std::uint32_t arrivals) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
  // Copies complete in the asynchronous proxy, which must see the barrier too.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  __trap();
#endif
}

/// Arrives. The phase also waits for `bytes` more bytes of bulk copies.
__device__ __forceinline__ void barrier_expect(SharedBarrier* barrier, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
#else
  __trap();
#endif
}

__device__ __forceinline__ void barrier_arrive(SharedBarrier* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
#else
  __trap();
#endif
}

/// Waits until the newest phase of this parity (0 or 1) is complete. So a wait for parity 1 passes
/// in phase 0, and a caller must be less than two phases behind the barrier.
__device__ __forceinline__ void barrier_wait(SharedBarrier* barrier, std::uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  std::uint32_t is_complete;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(is_complete)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (is_complete == 0);
#else
  __trap();
#endif
}

/// Copies from device to shared memory. `bytes` and both addresses are multiples of 16. The copied
/// bytes count towards the phase that the barrier is in.
__device__ __forceinline__ void bulk_copy(void* to_shared, const void* from, std::uint32_t bytes,
                                          SharedBarrier* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to_shared)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
#else
  __trap();
#endif
}

}  // namespace leasehold::device
