/// The CUDA features that our kernels use, in one place.
///
/// A kernel file is compiled twice: by nvcc for cards, and by the host compiler for tests, where
/// tests/support/simt/simt.hpp is included first and runs the kernel thread by thread. So kernels
/// use only these parts of CUDA:
///   - C++ keywords (`__device__`, `__shared__`, threadIdx …)
///   - `__syncthreads`, `__syncwarp`, `__threadfence`
///   - `__shfl_sync`, `__shfl_xor_sync`, `__ballot_sync`, and atomicAdd on 32 bits
///   - the small functions in tests/support/simt/cuda_builtins.hpp
///   - the functions declared here, in wgmma.cuh, in wgmma_int8.cuh and in bulk_copy.cuh
///
/// A kernel is `LEASEHOLD_KERNEL(name, Params, threads)`: it has one parameter block by value and
/// runs in blocks of at most `threads`. Its name begins with "lh_".
/// `LEASEHOLD_KERNEL_RESIDENT(name, Params, threads, blocks)` also limits its registers, so that an
/// SM holds that many blocks.
///
/// On cards with programmatic dependent launch (sm_90) a kernel may start before the previous
/// kernel has ended. These kernels begin by waiting for that end, so nothing in their bodies runs
/// early. `LEASEHOLD_KERNEL_EARLY(name, Params, threads, blocks)` does not wait: its body starts
/// early, and obeys the rules in gate.cuh. Source: PTX ISA, griddepcontrol.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)

#include <cuda_device_runtime_api.h>
#include <cuda_fp16.h>

#include "kernels/cuda/device/bulk_copy.cuh"
#include "kernels/cuda/device/wgmma_int8.cuh"

#define LEASEHOLD_KERNEL_WITH_BOUNDS(name, Params, ...)         \
  __device__ __forceinline__ void name##_body(const Params& p); \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__)     \
      name(const __grid_constant__ Params p) {                  \
    ::leasehold::device::trigger_next_kernel();                 \
    ::leasehold::device::await_previous_kernel();               \
    name##_body(p);                                             \
  }                                                             \
  __device__ __forceinline__ void name##_body(const Params& p)
#define LEASEHOLD_KERNEL(name, Params, threads) LEASEHOLD_KERNEL_WITH_BOUNDS(name, Params, threads)
#define LEASEHOLD_KERNEL_RESIDENT(name, Params, threads, blocks) \
  LEASEHOLD_KERNEL_WITH_BOUNDS(name, Params, threads, blocks)
#define LEASEHOLD_KERNEL_EARLY(name, Params, threads, blocks)   \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      name(const __grid_constant__ Params p)

namespace leasehold::device {

/// Waits until the kernel before this one has ended and its stores are visible to this thread.
__device__ __forceinline__ void await_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Once every block has called this or ended, the next kernel's blocks may take the room that this
/// kernel leaves.
__device__ __forceinline__ void trigger_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// The dynamic shared memory of the launch, aligned to 128 bytes.
__device__ __forceinline__ std::byte* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char leasehold_dynamic_shared[];
  return reinterpret_cast<std::byte*>(leasehold_dynamic_shared);
}

/// Converts between IEEE half and float, rounding to nearest even; two halves in one word, the
/// first low.
__device__ __forceinline__ float half_value(std::uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ std::uint32_t pack_halves(float first, float second) {
  const __half2 both = __floats2half2_rn(first, second);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

/// Loads words from a multiple of their size. Tests count the bank conflicts of these loads in
/// shared memory.
template <class Words>
__device__ __forceinline__ Words load_aligned(const std::byte* at) {
  return *reinterpret_cast<const Words*>(at);
}

/// Bypasses this SM's cache, because a copy from the host may have changed the value.
__device__ __forceinline__ std::uint32_t load_acquire(const std::uint32_t* at) {
  return *reinterpret_cast<const volatile std::uint32_t*>(at);
}
__device__ __forceinline__ std::uint64_t load_acquire(const std::uint64_t* at) {
  return *reinterpret_cast<const volatile unsigned long long*>(at);
}
/// Stores a value that the host sees only after everything that this thread wrote before.
__device__ __forceinline__ void store_to_host(std::uint64_t* at, std::uint64_t value) {
  __threadfence_system();
  *reinterpret_cast<volatile unsigned long long*>(at) = value;
}

/// Copies 16 bytes from device to shared memory, asynchronously if the card can (sm_80). Both
/// addresses are aligned to 16.
__device__ __forceinline__ void copy_async_16(void* to_shared, const void* from) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
  *reinterpret_cast<uint4*>(to_shared) = *reinterpret_cast<const uint4*>(from);
#endif
}
/// Copies 4 bytes in the same way. Both addresses are aligned to 4.
__device__ __forceinline__ void copy_async_4(void* to_shared, const void* from) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
#else
  *reinterpret_cast<std::uint32_t*>(to_shared) = *reinterpret_cast<const std::uint32_t*>(from);
#endif
}
__device__ __forceinline__ void copy_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until all but the newest `kPending` copy groups of this thread are complete. A
/// __syncthreads must follow before other threads read the copies, or a __syncwarp before other
/// lanes of the warp do.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

/// d += a · b: halves [16 × 16] times [16 × 8], sums in float; the whole warp calls it. Fragments
/// (PTX ISA, mma.m16n8k16), with g = lane / 4 and t = lane % 4: a[0] holds row g, columns 2t and
/// 2t+1; a[1] row g+8; a[2] row g, columns 2t+8 and 2t+9; a[3] the same columns of row g+8. b[0]
/// holds rows 2t and 2t+1 of column g; b[1] rows 2t+8 and 2t+9. d[0], d[1] are row g, columns 2t
/// and 2t+1; d[2], d[3] row g+8.
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4],
                                            const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int half = 0; half < 2; ++half) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  }
#endif
}

/// d = start + a · b: int8 [16 × 16] times [16 × 8], sums in 32 bits; the whole warp calls it.
/// Fragments (PTX ISA, mma.m16n8k16 of s8), with g = lane / 4 and t = lane % 4: a[0] holds row g,
/// columns 4t … 4t + 3, the first in the lowest byte; a[1] row g+8. b holds rows 4t … 4t + 3 of
/// column g. d is as in mma_16x8x16. Cards before sm_80 multiply the upper and lower eight rows in
/// turn.
__device__ __forceinline__ void mma_int8_16x8x16(std::int32_t (&d)[4], std::int32_t start,
                                                 const std::uint32_t (&a)[2], std::uint32_t b) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%7,%7,%7,%7};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b), "r"(start));
#else
  for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%4,%4};"
                 : "=r"(d[2 * half]), "=r"(d[2 * half + 1])
                 : "r"(a[half]), "r"(b), "r"(start));
  }
#endif
}

/// The same for [16 × 32] times [32 × 8]: a[2], a[3] and b[1] are columns and rows 16 further on.
__device__ __forceinline__ void mma_int8_16x8x32(std::int32_t (&d)[4], std::int32_t start,
                                                 const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%10,%10,%10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(start));
#else
  const std::uint32_t first[2] = {a[0], a[1]};
  const std::uint32_t second[2] = {a[2], a[3]};
  std::int32_t rest[4];
  mma_int8_16x8x16(d, start, first, b[0]);
  mma_int8_16x8x16(rest, 0, second, b[1]);
  for (int i = 0; i < 4; ++i) d[i] += rest[i];
#endif
}

/// Sets whether the body of an IF node runs. `handle` is that node's condition, in the graph of
/// this kernel.
__device__ __forceinline__ void set_graph_condition(std::uint64_t handle, std::uint32_t value) {
#if CUDART_VERSION >= 12040
  cudaGraphSetConditional(static_cast<cudaGraphConditionalHandle>(handle), value);
#endif
}

}  // namespace leasehold::device

#elif !defined(LEASEHOLD_SIMT)
#error "with a host compiler, pass -include tests/support/simt/simt.hpp"
#endif
