/// wgmma of bytes as inline PTX; wgmma.cuh says how a kernel uses it. The tests' version is in
/// tests/support/simt/simt.hpp.
#pragma once

#include "kernels/cuda/device/wgmma.cuh"

namespace leasehold::device {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LEASEHOLD_SUMS_8(i)                                                           \
  "+r"(d[i]), "+r"(d[(i) + 1]), "+r"(d[(i) + 2]), "+r"(d[(i) + 3]), "+r"(d[(i) + 4]), \
      "+r"(d[(i) + 5]), "+r"(d[(i) + 6]), "+r"(d[(i) + 7])
/// The operands after the sums have the numbers a0 … a3, b and adds.
#define LEASEHOLD_WGMMA_INT8_OF(type, n, a0, a1, a2, a3, b_at, adds_at, sums, ...)      \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #adds_at                              \
               ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k32.s32." type ".s8 {" sums \
               "}, {%" #a0 ",%" #a1 ",%" #a2 ",%" #a3 "}, %" #b_at ", p; }"             \
               : __VA_ARGS__                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds ? 1 : 0)  \
               : "memory")
#define LEASEHOLD_WGMMA_INT8(...)               \
  if constexpr (kIsSigned) {                    \
    LEASEHOLD_WGMMA_INT8_OF("s8", __VA_ARGS__); \
  } else {                                      \
    LEASEHOLD_WGMMA_INT8_OF("u8", __VA_ARGS__); \
  }
#endif

/// d = a · b, plus d if `adds`: the warpgroup's bytes [64 × 32], 16 rows per warp, times signed
/// bytes [32 × kColumns] from shared memory, sums in 32 bits, which wrap. a, signed or not: as in
/// mma_int8_16x8x32. d: as in wgmma_64x16. b: core matrices of 8 columns × 16 k, likewise.
template <int kColumns, bool kIsSigned>
__device__ __forceinline__ void wgmma_int8_64x32(std::int32_t (&d)[kColumns / 2],
                                                 const std::uint32_t (&a)[4],
                                                 const std::byte* b_shared, std::uint32_t lbo_bytes,
                                                 std::uint32_t sbo_bytes, bool adds) {
  static_assert(kColumns == 32 || kColumns == 64 || kColumns == 128);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const std::uint64_t b = wgmma_descriptor(b_shared, lbo_bytes, sbo_bytes);
  if constexpr (kColumns == 32) {
    LEASEHOLD_WGMMA_INT8(32, 16, 17, 18, 19, 20, 21,
                         "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15",
                         LEASEHOLD_SUMS_8(0), LEASEHOLD_SUMS_8(8));
  } else if constexpr (kColumns == 64) {
    LEASEHOLD_WGMMA_INT8(64, 32, 33, 34, 35, 36, 37,
                         "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                         "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31",
                         LEASEHOLD_SUMS_8(0), LEASEHOLD_SUMS_8(8), LEASEHOLD_SUMS_8(16),
                         LEASEHOLD_SUMS_8(24));
  } else {
    LEASEHOLD_WGMMA_INT8(128, 64, 65, 66, 67, 68, 69,
                         "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                         "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                         "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                         "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63",
                         LEASEHOLD_SUMS_8(0), LEASEHOLD_SUMS_8(8), LEASEHOLD_SUMS_8(16),
                         LEASEHOLD_SUMS_8(24), LEASEHOLD_SUMS_8(32), LEASEHOLD_SUMS_8(40),
                         LEASEHOLD_SUMS_8(48), LEASEHOLD_SUMS_8(56));
  }
#else
  __trap();
#endif
}

#undef LEASEHOLD_WGMMA_INT8
#undef LEASEHOLD_WGMMA_INT8_OF
#undef LEASEHOLD_SUMS_8

}  // namespace leasehold::device
