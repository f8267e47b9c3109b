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
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// A process runs one block of one kernel at a time, so a static variable can be shared memory.
#define __shared__ static

struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
// The index of the running thread; kernels run one at a time.
[[gnu::visibility("hidden")]] inline constinit uint3 threadIdx{};
[[gnu::visibility("hidden")]] inline constinit uint3 blockIdx{};
[[gnu::visibility("hidden")]] inline constinit uint3 blockDim{};
[[gnu::visibility("hidden")]] inline constinit uint3 gridDim{};
inline void __syncthreads() {
  leasehold::simt::arrive_and_wait_block();
}
inline void __syncwarp(std::uint32_t mask = 0xFFFF'FFFFu) {
  leasehold::simt::sync_warp(mask);
}
inline void __threadfence() {}
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
inline std::uint32_t __ballot_sync(std::uint32_t mask, int predicate) {
  return leasehold::simt::ballot(mask, predicate != 0);
}
// Fibers do not switch within this function, so plain arithmetic is atomic.
template <class T>
  requires(std::is_same_v<T, int> || std::is_same_v<T, unsigned>)
T atomicAdd(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  *at = static_cast<T>(static_cast<unsigned>(before) + static_cast<unsigned>(value));
  return before;
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
/// sum + the products of the four signed bytes.
inline int __dp4a(int a, int b, int sum) {
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<std::int8_t>(a >> shift) * static_cast<std::int8_t>(b >> shift);
  return sum;
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
