/// The words of CUDA that our kernels use, in one place.
///
/// A kernel's file is compiled twice: by nvcc for cards, and by the host's compiler for the tests,
/// where tests/support/simt/simt.hpp, included before it, runs it thread by thread. So kernels use
/// nothing of CUDA but the C++ keywords (`__device__`, `__shared__`, threadIdx …), `__syncthreads`,
/// `__syncwarp`, the `_sync` shuffles and votes, atomicAdd on 32 bits, `__threadfence`, the small
/// functions that tests/support/simt/cuda_builtins.hpp has, and what is declared here and in
/// wgmma.cuh.
///
/// A kernel is `LEASEHOLD_KERNEL(name, Params, threads)`: it takes one parameter block by value and
/// runs in blocks of exactly `threads`, at most; names begin with "lh_".
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)

#include <cuda_device_runtime_api.h>
#include <cuda_fp16.h>

#include "kernels/cuda/device/wgmma.cuh"

#define LEASEHOLD_KERNEL(name, Params, threads) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Params p)

namespace leasehold::device {

/// The shared memory that the launch asked for, 128-byte aligned.
__device__ __forceinline__ std::byte* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char leasehold_dynamic_shared[];
  return reinterpret_cast<std::byte*>(leasehold_dynamic_shared);
}

/// IEEE half from and to float, rounding to nearest even; two of them in one word, the first low.
__device__ __forceinline__ std::uint16_t half_bits(float x) {
  return __half_as_ushort(__float2half_rn(x));
}
__device__ __forceinline__ float half_value(std::uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ std::uint32_t pack_halves(float first, float second) {
  const __half2 both = __floats2half2_rn(first, second);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

/// Not from a cache of this SM: another writer, a copy of the host, may have changed it.
__device__ __forceinline__ std::uint32_t load_acquire(const std::uint32_t* at) {
  return *reinterpret_cast<const volatile std::uint32_t*>(at);
}
__device__ __forceinline__ std::uint64_t load_acquire(const std::uint64_t* at) {
  return *reinterpret_cast<const volatile unsigned long long*>(at);
}
/// Seen by the host, after everything this thread invalidate_tiles before.
__device__ __forceinline__ void store_to_host(std::uint64_t* at, std::uint64_t value) {
  __threadfence_system();
  *reinterpret_cast<volatile unsigned long long*>(at) = value;
}

/// 16 bytes from device to shared memory, beside computing where the card can (sm_80); both ends
/// aligned to 16.
__device__ __forceinline__ void copy_async_16(void* to_shared, const void* from) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
  *reinterpret_cast<uint4*>(to_shared) = *reinterpret_cast<const uint4*>(from);
#endif
}
__device__ __forceinline__ void copy_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until all but the newest `kPending` groups of this thread are there; then __syncthreads.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

/// d += a · b: halves [16 × 16] times [16 × 8], sums in float; the whole warp together.
/// Fragments (PTX ISA, mma.m16n8k16): with g = lane / 4 and t = lane % 4, a[0] holds row g, columns
/// 2t and 2t+1; a[1] row g+8; a[2] row g, columns 2t+8 and 2t+9; a[3] row g+8 of those. b[0] holds
/// rows 2t and 2t+1 of column g; b[1] rows 2t+8 and 2t+9. d[0], d[1] are row g, columns 2t and
/// 2t+1; d[2], d[3] row g+8.
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

/// Of the IF node whose handle it is, in the graph that this kernel runs in: whether its body runs.
__device__ __forceinline__ void set_graph_condition(std::uint64_t handle, std::uint32_t value) {
#if CUDART_VERSION >= 12040
  cudaGraphSetConditional(static_cast<cudaGraphConditionalHandle>(handle), value);
#endif
}

}  // namespace leasehold::device

#elif !defined(LEASEHOLD_SIMT)
#error "for a host's compiler, give -include tests/support/simt/simt.hpp first"
#endif
