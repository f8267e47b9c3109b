/// wgmma as inline PTX (PTX ISA, asynchronous warpgroup matrix instructions). Only sm_90a has it; a
/// kernel that reaches it on another card traps. The tests' version is in
/// tests/support/simt/simt.hpp; simt.cuh includes the right one.
///
/// The order in a kernel: write B to shared memory (copy_async_wait for copies),
/// fence_proxy_async() in every thread that wrote, __syncthreads(), wgmma_fence(), wgmma_64x16 …,
/// wgmma_commit(), wgmma_wait. Until that wait, no thread may touch d, a or that part of shared
/// memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leasehold::device {

/// Makes this thread's writes to shared memory visible to wgmma after the next barrier.
__device__ __forceinline__ void fence_proxy_async() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/// Call before the first wgmma, and again after registers of d or a were written.
__device__ __forceinline__ void wgmma_fence() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void wgmma_commit() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Waits until all but the newest `kPending` groups are complete.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#endif
}

/// Describes a matrix in shared memory without swizzle: 14 bits per field, in units of 16 bytes.
__device__ __forceinline__ std::uint64_t wgmma_descriptor(const std::byte* shared,
                                                          std::uint32_t lbo_bytes,
                                                          std::uint32_t sbo_bytes) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  return static_cast<std::uint64_t>(address >> 4 & 0x3FFF) |
         static_cast<std::uint64_t>(lbo_bytes >> 4 & 0x3FFF) << 16 |
         static_cast<std::uint64_t>(sbo_bytes >> 4 & 0x3FFF) << 32;
}

/// d += a · b: the warpgroup's halves [64 × 16], 16 rows per warp, times [16 × kColumns] from
/// shared memory, sums in float. a: as in mma_16x8x16. d[4j], d[4j+1]: row g, columns 8j + 2t and
/// the next; d[4j+2], d[4j+3]: row g+8. b: core matrices of 8 columns × 8 k, with the 16 bytes of
/// neighbouring columns side by side; `lbo_bytes` is the distance between cores in k, `sbo_bytes`
/// in columns, all multiples of 16.
template <int kColumns>
__device__ __forceinline__ void wgmma_64x16(float (&d)[kColumns / 2], const std::uint32_t (&a)[4],
                                            const std::byte* b_shared, std::uint32_t lbo_bytes,
                                            std::uint32_t sbo_bytes) {
  static_assert(kColumns == 64 || kColumns == 128);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const std::uint64_t b = wgmma_descriptor(b_shared, lbo_bytes, sbo_bytes);
  if constexpr (kColumns == 64) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, 1, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
        "{%32,%33,%34,%35}, %36, p, 1, 1, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
          "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
          "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, 1, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
        "{%64,%65,%66,%67}, %68, p, 1, 1, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
          "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
          "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
          "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
          "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
          "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
        : "memory");
  }
#else
  __trap();
#endif
}

}  // namespace leasehold::device
