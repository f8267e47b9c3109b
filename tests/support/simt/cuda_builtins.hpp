/// CUDA keywords, indices and small functions for kernels that the host compiler compiles.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/support/simt/collectives.hpp"

#define LEASEHOLD_SIMT 1

#define __device__
#define __host__
#define __global__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// A process runs one block of one kernel at a time, so a static variable can be shared memory.
#define __shared__ static

struct uint3 {
  unsigned x, y, z;
};
using dim3 = uint3;
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
constexpr uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
constexpr int2 make_int2(int x, int y) {
  return {x, y};
}
constexpr int4 make_int4(int x, int y, int z, int w) {
  return {x, y, z, w};
}
constexpr float2 make_float2(float x, float y) {
  return {x, y};
}
constexpr float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

// The index of the running thread; kernels run one at a time.
[[gnu::visibility("hidden")]] inline constinit uint3 threadIdx{};
[[gnu::visibility("hidden")]] inline constinit uint3 blockIdx{};
[[gnu::visibility("hidden")]] inline constinit uint3 blockDim{};
[[gnu::visibility("hidden")]] inline constinit uint3 gridDim{};
constexpr int warpSize = 32;

inline void __syncthreads() {
  leasehold::simt::arrive_and_wait_block();
}
inline void __syncwarp(std::uint32_t mask = 0xFFFF'FFFFu) {
  leasehold::simt::sync_warp(mask);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
[[noreturn]] inline void __trap() {
  leasehold::simt::fail_thread("__trap()");
}

template <class T>
T __shfl_sync(std::uint32_t mask, T value, int source, int width = 32) {
  return leasehold::simt::shuffle(leasehold::simt::Shuffle::Index, mask, value, source, width);
}
template <class T>
T __shfl_xor_sync(std::uint32_t mask, T value, int lanes, int width = 32) {
  return leasehold::simt::shuffle(leasehold::simt::Shuffle::Xor, mask, value, lanes, width);
}
template <class T>
T __shfl_down_sync(std::uint32_t mask, T value, unsigned delta, int width = 32) {
  return leasehold::simt::shuffle(leasehold::simt::Shuffle::Down, mask, value,
                                  static_cast<int>(delta), width);
}
template <class T>
T __shfl_up_sync(std::uint32_t mask, T value, unsigned delta, int width = 32) {
  return leasehold::simt::shuffle(leasehold::simt::Shuffle::Up, mask, value,
                                  static_cast<int>(delta), width);
}
inline std::uint32_t __ballot_sync(std::uint32_t mask, int predicate) {
  return leasehold::simt::ballot(mask, predicate != 0);
}
inline int __any_sync(std::uint32_t mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(std::uint32_t mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}

// Fibers do not switch within these functions, so plain arithmetic is atomic.
template <class T>
  requires(std::is_same_v<T, int> || std::is_same_v<T, unsigned>)
T atomicAdd(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  *at = static_cast<T>(static_cast<unsigned>(before) + static_cast<unsigned>(value));
  return before;
}
template <class T>
  requires(std::is_same_v<T, int> || std::is_same_v<T, unsigned>)
T atomicMax(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  if (value > before) *at = value;
  return before;
}
template <class T>
  requires(std::is_same_v<T, int> || std::is_same_v<T, unsigned>)
T atomicMin(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  if (value < before) *at = value;
  return before;
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
/// The low word of high:low shifted right by shift mod 32.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
/// The high word of high:low shifted left by shift mod 32.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
/// Each nibble of `selector` selects a byte of y:x; bit 3 replicates the sign of that byte instead.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t both = std::uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> (4 * i) & 0xF;
    unsigned byte = static_cast<unsigned>(both >> (8 * (nibble & 7))) & 0xFF;
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fmaf(a, b, c);
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fsqrt_rn(float a) {
  return std::sqrt(a);
}
template <class T>
  requires std::is_arithmetic_v<T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
  requires std::is_arithmetic_v<T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
