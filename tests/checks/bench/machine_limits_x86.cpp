#include "tests/checks/bench/machine_limits.hpp"

#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/amx/tiles.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kIterations = 200'000;  // a millisecond or two
constexpr int kSums = 12;                       // enough to hide the latency of every instruction
constexpr int kRepeats = 4;                     // enough to hide the cost of a loop
constexpr std::size_t kTileBytes = 256 * 1024;
constexpr std::size_t kStepBytes = 256;

// The functions are written in assembly, because a compiler merges equal sums, or copies registers.
// The values do not matter.

[[gnu::target("avx512f")]] void multiply_floats_avx512() {
  const __m512 factor = _mm512_set1_ps(1.0F);
  __m512 sums[kSums];
#pragma GCC unroll 12
  for (__m512& sum : sums) sum = factor;
  for (std::uint32_t i = 0; i < kIterations; i += kRepeats)
#pragma GCC unroll 4
    for (int repeat = 0; repeat < kRepeats; ++repeat)
#pragma GCC unroll 12
      for (__m512& sum : sums) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(factor));
}

[[gnu::target("avx2,fma")]] void multiply_floats_avx2() {
  const __m256 factor = _mm256_set1_ps(1.0F);
  __m256 sums[kSums];
#pragma GCC unroll 12
  for (__m256& sum : sums) sum = factor;
  for (std::uint32_t i = 0; i < kIterations; i += kRepeats)
#pragma GCC unroll 4
    for (int repeat = 0; repeat < kRepeats; ++repeat)
#pragma GCC unroll 12
      for (__m256& sum : sums) asm volatile("vfmadd231ps %1, %1, %0" : "+x"(sum) : "x"(factor));
}

[[gnu::target("avx512f,avx512vnni")]] void multiply_bytes_avx512() {
  const __m512i factor = _mm512_set1_epi8(1);
  __m512i sums[kSums];
#pragma GCC unroll 12
  for (__m512i& sum : sums) sum = factor;
  for (std::uint32_t i = 0; i < kIterations; i += kRepeats)
#pragma GCC unroll 4
    for (int repeat = 0; repeat < kRepeats; ++repeat)
#pragma GCC unroll 12
      for (__m512i& sum : sums) asm volatile("vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(factor));
}

/// Uses the encoding of AVX-VNNI, which does not need AVX-512.
[[gnu::target("avx2")]] void multiply_bytes_avx_vnni() {
  const __m256i factor = _mm256_set1_epi8(1);
  __m256i sums[kSums];
#pragma GCC unroll 12
  for (__m256i& sum : sums) sum = factor;
  for (std::uint32_t i = 0; i < kIterations; i += kRepeats)
#pragma GCC unroll 4
    for (int repeat = 0; repeat < kRepeats; ++repeat)
#pragma GCC unroll 12
      for (__m256i& sum : sums)
        asm volatile("%{vex%} vpdpbusd %1, %1, %0" : "+x"(sum) : "x"(factor));
}

/// Three instructions: add products of bytes to pairs, pairs to fours, and fours to the sum.
[[gnu::target("avx2")]] void multiply_bytes_avx2() {
  const __m256i factor = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[kSums];
#pragma GCC unroll 12
  for (__m256i& sum : sums) sum = factor;
  for (std::uint32_t i = 0; i < kIterations; i += kRepeats)
#pragma GCC unroll 4
    for (int repeat = 0; repeat < kRepeats; ++repeat)
#pragma GCC unroll 12
      for (__m256i& sum : sums) {
        __m256i fours;
        asm volatile(
            "vpmaddubsw %2, %2, %1\n\t"
            "vpmaddwd %3, %1, %1\n\t"
            "vpaddd %1, %0, %0"
            : "+x"(sum), "=&x"(fours)
            : "x"(factor), "x"(ones));
      }
}

/// Four whole tiles of sums hide the latency.
[[gnu::target("amx-tile,amx-int8")]] void multiply_bytes_amx() {
  using Tiles = amx::HardwareTiles;
  amx::configure_tiles<Tiles>(16, 64);
  for (std::uint32_t i = 0; i < kIterations; i += amx::kSumTiles) {
    Tiles::multiply<0, 4, 6>();
    Tiles::multiply<1, 5, 7>();
    Tiles::multiply<2, 4, 6>();
    Tiles::multiply<3, 5, 7>();
  }
  amx::release_tiles<Tiles>();
}

/// Reads a tile in whole registers. Memory is requested `ahead` bytes before it is read, unless
/// `ahead` is 0.
[[gnu::target("avx2")]] void read_tile(std::span<const std::byte> tile, std::size_t ahead) {
  __m256i sums[kStepBytes / sizeof(__m256i)] = {};
  for (std::size_t at = 0; at + kStepBytes <= tile.size(); at += kStepBytes) {
    const std::byte* from = tile.data() + at;
    for (std::size_t line = 0; ahead > 0 && line < kStepBytes; line += 64)
      __builtin_prefetch(from + ahead + line);
    for (std::size_t i = 0; i < std::size(sums); ++i)
      sums[i] = _mm256_xor_si256(
          sums[i],
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * sizeof(__m256i))));
  }
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

/// Returns the work per second. The calls `work(index)` for every index below `n` do `total` work
/// together.
template <class Work>
double rate(ThreadPool& pool, std::uint32_t n, double total, Work&& work) {
  const double begin_ns = work_time_ns(pool.threads());
  pool.run(n, [&](std::uint32_t, std::uint32_t index) {
    work(index);
    return true;
  });
  return total / (work_time_ns(pool.threads()) - begin_ns) * 1e9;
}

double read_rate(ThreadPool& pool, std::span<const std::byte> memory) {
  if (!cpu_has(SimdPath::Avx2)) return 0;
  double best = 0;
  for (const std::size_t ahead : {0, 2048, 4096, 12288}) {
    const auto n = static_cast<std::uint32_t>(memory.size() / kTileBytes);
    best = std::max(best, rate(pool, n, static_cast<double>(n * kTileBytes), [&](std::uint32_t i) {
                      read_tile(memory.subspan(i * kTileBytes, kTileBytes), ahead);
                    }));
  }
  return best;
}

double rate_of(ThreadPool& pool, double macs_each, void (*work)()) {
  return rate(pool, pool.threads(), macs_each * kIterations * pool.threads(),
              [&](std::uint32_t) { work(); });
}

}  // namespace

ByteProducts byte_products(SimdPath path) {
  switch (path) {
    case SimdPath::Scalar:
    case SimdPath::Neon:
      return ByteProducts::None;
    case SimdPath::Avx2:
      return ByteProducts::Vpmaddubsw;
    case SimdPath::AvxVnni:
      return ByteProducts::Vpdpbusd;
    case SimdPath::Amx:
      return ByteProducts::Tdpbssd;
    case SimdPath::Avx512:
      break;
  }
  const bool has_vnni = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
  return has_vnni ? ByteProducts::Vpdpbusd : ByteProducts::Vpmaddubsw;
}

MachineLimits measure_limits(ThreadPool& pool, SimdPath path, std::span<const std::byte> memory) {
  MachineLimits limits{.bytes_per_s = read_rate(pool, memory)};
  if (path == SimdPath::Avx512 || path == SimdPath::Amx)
    limits.fma_per_s = rate_of(pool, kSums * 16, multiply_floats_avx512);
  if (path == SimdPath::Avx2 || path == SimdPath::AvxVnni)
    limits.fma_per_s = rate_of(pool, kSums * 8, multiply_floats_avx2);
  if (byte_products(path) == ByteProducts::Vpdpbusd)
    limits.byte_macs_per_s = path == SimdPath::AvxVnni
                                 ? rate_of(pool, kSums * 32, multiply_bytes_avx_vnni)
                                 : rate_of(pool, kSums * 64, multiply_bytes_avx512);
  if (byte_products(path) == ByteProducts::Tdpbssd)
    limits.byte_macs_per_s = rate_of(pool, 16 * 16 * 64, multiply_bytes_amx);
  if (byte_products(path) == ByteProducts::Vpmaddubsw)
    limits.byte_macs_per_s = rate_of(pool, kSums * 32, multiply_bytes_avx2);
  return limits;
}

}  // namespace leasehold::bench
