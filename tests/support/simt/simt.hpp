/// Include this before a kernel file in host code: it makes the kernel C++ that the runner can run.
///
/// It defines CUDA's keywords and the functions that kernels/cuda/device/simt.cuh declares for
/// cards, with the same meaning. A matrix product is plain float additions in ascending k; a card
/// may round differently, so tests compare such results with a tolerance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/numerics/f16.hpp"
#include "tests/support/simt/cuda_builtins.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/support/simt/shared_barriers.hpp"

#define LEASEHOLD_SIMT_KERNEL(name, Params, threads, is_early)                            \
  static void name([[maybe_unused]] const Params& p);                                     \
  static const ::leasehold::simt::Registration name##_registration(                       \
      {#name, sizeof(Params), threads,                                                    \
       [](const void* params) { name(*static_cast<const Params*>(params)); }, is_early}); \
  static void name([[maybe_unused]] const Params& p)

#define LEASEHOLD_KERNEL(name, Params, threads) LEASEHOLD_SIMT_KERNEL(name, Params, threads, false)

#define LEASEHOLD_KERNEL_RESIDENT(name, Params, threads, blocks) \
  static_assert((blocks) >= 1);                                  \
  LEASEHOLD_KERNEL(name, Params, threads)

#define LEASEHOLD_KERNEL_EARLY(name, Params, threads, blocks) \
  static_assert((blocks) >= 1);                               \
  LEASEHOLD_SIMT_KERNEL(name, Params, threads, true)

namespace leasehold::device {

inline std::byte* dynamic_shared() {
  return simt::dynamic_shared_memory();
}

inline float half_value(std::uint16_t bits) {
  return f32_from_f16(bits);
}
inline std::uint32_t pack_halves(float first, float second) {
  return std::uint32_t{f16_from_f32(second)} << 16 | f16_from_f32(first);
}

template <class Words>
Words load_aligned(const std::byte* at) {
  simt::notify_load(at, sizeof(Words));
  return *reinterpret_cast<const Words*>(at);
}

// Another host thread may write this word while a kernel runs.
inline std::uint32_t load_acquire(const std::uint32_t* at) {
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
inline std::uint64_t load_acquire(const std::uint64_t* at) {
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
inline void store_to_host(std::uint64_t* at, std::uint64_t value) {
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

inline void copy_async_16(void* to_shared, const void* from) {
  simt::copy_16(to_shared, from);
}
inline void copy_async_4(void* to_shared, const void* from) {
  simt::copy_4(to_shared, from);
}
inline void copy_async_commit() {
  simt::commit_copies();
}
template <int kPending>
void copy_async_wait() {
  simt::wait_copies(kPending);
}

inline void barrier_init(SharedBarrier* barrier, std::uint32_t arrivals) {
  simt::init_barrier(*barrier, arrivals);
}
inline void barrier_expect(SharedBarrier* barrier, std::uint32_t bytes) {
  simt::arrive_at_barrier(*barrier, bytes);
}
inline void barrier_arrive(SharedBarrier* barrier) {
  simt::arrive_at_barrier(*barrier, 0);
}
inline void barrier_wait(SharedBarrier* barrier, std::uint32_t parity) {
  simt::wait_for_barrier(*barrier, parity);
}
inline void bulk_copy(void* to_shared, const void* from, std::uint32_t bytes,
                      SharedBarrier* barrier) {
  simt::copy_bulk(*barrier, {.to = to_shared, .from = from, .size_bytes = bytes});
}

inline void await_previous_kernel() {
  simt::await_previous_kernel();
}
inline void trigger_next_kernel() {}

inline void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  simt::multiply_warp({.d = d, .a = a, .b = b});
}

inline void mma_int8_16x8x16(std::int32_t (&d)[4], std::int32_t start, const std::uint32_t (&a)[2],
                             std::uint32_t b) {
  for (std::int32_t& sum : d) sum = start;
  simt::multiply_warp_int8({.d = d, .a = a, .b = &b, .halves = 1});
}
inline void mma_int8_16x8x32(std::int32_t (&d)[4], std::int32_t start, const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[2]) {
  for (std::int32_t& sum : d) sum = start;
  simt::multiply_warp_int8({.d = d, .a = a, .b = b, .halves = 2});
}

template <int kColumns>
void wgmma_64x16(float (&d)[kColumns / 2], const std::uint32_t (&a)[4], const std::byte* b_shared,
                 std::uint32_t lbo_bytes, std::uint32_t sbo_bytes) {
  static_assert(kColumns == 8 || kColumns == 16 || kColumns == 32 || kColumns == 64 ||
                kColumns == 128);
  simt::multiply_warpgroup({.d = d,
                            .a = a,
                            .b = b_shared,
                            .lbo_bytes = lbo_bytes,
                            .sbo_bytes = sbo_bytes,
                            .n_columns = kColumns});
}
template <int kColumns, bool kIsSigned>
void wgmma_int8_64x32(std::int32_t (&d)[kColumns / 2], const std::uint32_t (&a)[4],
                      const std::byte* b_shared, std::uint32_t lbo_bytes, std::uint32_t sbo_bytes,
                      bool adds) {
  static_assert(kColumns == 8 || kColumns == 32 || kColumns == 64 || kColumns == 128);
  simt::multiply_warpgroup({.elements = kIsSigned ? simt::GroupElements::SignedBytes
                                                  : simt::GroupElements::UnsignedBytes,
                            .adds = adds,
                            .d = d,
                            .a = a,
                            .b = b_shared,
                            .lbo_bytes = lbo_bytes,
                            .sbo_bytes = sbo_bytes,
                            .n_columns = kColumns});
}
inline void fence_proxy_async() {
  simt::fence_proxy_async();
}
inline void wgmma_fence() {
  simt::fence_products();
}
inline void wgmma_commit() {
  simt::commit_products();
}
template <int kPending>
void wgmma_wait() {
  simt::wait_products(kPending);
}

inline void set_graph_condition(std::uint64_t handle, std::uint32_t value) {
  simt::notify_condition(handle, value);
}

}  // namespace leasehold::device
