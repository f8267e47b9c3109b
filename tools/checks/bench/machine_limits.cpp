#include "tools/checks/bench/machine_limits.hpp"

#include <immintrin.h>

#include <algorithm>

#include "tools/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kTimes = 200'000;  // a millisecond or two
constexpr int kSums = 24;                  // hide the latency of every instruction
constexpr std::size_t kTileBytes = 256 * 1024;
constexpr std::size_t kStepBytes = 256;

// Empty assembly hides each value from the compiler, so that it neither merges nor drops sums.

[[gnu::target("avx512f")]] void multiply_floats_avx512() {
  __m512 factor = _mm512_set1_ps(1.0F);
  __m512 sums[kSums];
  asm volatile("" : "+v"(factor));
#pragma GCC unroll 24
  for (__m512& sum : sums) {
    sum = factor;
    asm volatile("" : "+v"(sum));
  }
  for (std::uint32_t i = 0; i < kTimes; ++i)
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(factor, factor, sum);
#pragma GCC unroll 24
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
}

[[gnu::target("avx2,fma")]] void multiply_floats_avx2() {
  constexpr int kFew = 12;  // of sixteen registers
  __m256 factor = _mm256_set1_ps(1.0F);
  __m256 sums[kFew];
  asm volatile("" : "+x"(factor));
#pragma GCC unroll 12
  for (__m256& sum : sums) {
    sum = factor;
    asm volatile("" : "+x"(sum));
  }
  for (std::uint32_t i = 0; i < kTimes; ++i)
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(factor, factor, sum);
#pragma GCC unroll 12
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));
}

[[gnu::target("avx512f,avx512vnni")]] void multiply_bytes_avx512() {
  __m512i factor = _mm512_set1_epi8(1);
  __m512i sums[kSums];
  asm volatile("" : "+v"(factor));
#pragma GCC unroll 24
  for (__m512i& sum : sums) {
    sum = factor;
    asm volatile("" : "+v"(sum));
  }
  for (std::uint32_t i = 0; i < kTimes; ++i)
#pragma GCC unroll 24
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, factor, factor);
#pragma GCC unroll 24
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
}

[[gnu::target("avx2")]] void multiply_bytes_avx2() {
  constexpr int kFew = 8;
  __m256i factor = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[kFew];
#pragma GCC unroll 8
  for (__m256i& sum : sums) {
    sum = factor;
    asm volatile("" : "+x"(sum));
  }
  for (std::uint32_t i = 0; i < kTimes; ++i)
#pragma GCC unroll 8
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(factor));  // else the product is made once for all
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(factor, factor), ones));
    }
#pragma GCC unroll 8
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

/// Reads a tile in whole registers; `ahead` bytes are requested before, unless that is 0.
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

/// Work per second of `work(index)` for each index below `n`, all of which do `total` together.
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
  for (const std::size_t ahead : {0, 4096, 12288}) {
    const auto n = static_cast<std::uint32_t>(memory.size() / kTileBytes);
    best = std::max(best, rate(pool, n, static_cast<double>(n * kTileBytes), [&](std::uint32_t i) {
                      read_tile(memory.subspan(i * kTileBytes, kTileBytes), ahead);
                    }));
  }
  return best;
}

double rate_of(ThreadPool& pool, double macs_each, void (*work)()) {
  return rate(pool, pool.threads(), macs_each * kTimes * pool.threads(),
              [&](std::uint32_t) { work(); });
}

}  // namespace

std::string_view name(ByteProducts products) {
  switch (products) {
    case ByteProducts::None:
      break;
    case ByteProducts::Vpmaddubsw:
      return "vpmaddubsw";
    case ByteProducts::Vpdpbusd:
      return "vpdpbusd";
  }
  return "none";
}

ByteProducts byte_products(SimdPath path) {
  if (path == SimdPath::Scalar) return ByteProducts::None;
  const bool has_vnni = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
  return path == SimdPath::Avx512 && has_vnni ? ByteProducts::Vpdpbusd : ByteProducts::Vpmaddubsw;
}

MachineLimits MachineLimits::max(const MachineLimits& other) const {
  return {std::max(bytes_per_s, other.bytes_per_s), std::max(fma_per_s, other.fma_per_s),
          std::max(byte_macs_per_s, other.byte_macs_per_s)};
}

MachineLimits measure_limits(ThreadPool& pool, SimdPath path, std::span<const std::byte> memory) {
  MachineLimits limits{.bytes_per_s = read_rate(pool, memory)};
  if (path == SimdPath::Avx512)
    limits.fma_per_s = rate_of(pool, kSums * 16, multiply_floats_avx512);
  if (path == SimdPath::Avx2) limits.fma_per_s = rate_of(pool, 12 * 8, multiply_floats_avx2);
  if (byte_products(path) == ByteProducts::Vpdpbusd)
    limits.byte_macs_per_s = rate_of(pool, kSums * 64, multiply_bytes_avx512);
  if (byte_products(path) == ByteProducts::Vpmaddubsw)
    limits.byte_macs_per_s = rate_of(pool, 8 * 32, multiply_bytes_avx2);
  return limits;
}

}  // namespace leasehold::bench
