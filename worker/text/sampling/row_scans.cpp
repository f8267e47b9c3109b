#include "worker/text/sampling/row_scans.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace leasehold {
namespace {

constexpr std::size_t kMaskBits = 64;

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

float highest(std::span<const float> values) {
  float most = -std::numeric_limits<float>::infinity();
  for (const float value : values) most = std::max(most, value);
  return most;
}

std::size_t find(std::span<const float> values, float value) {
  return static_cast<std::size_t>(std::ranges::find(values, value) - values.begin());
}

CountAndMass at_least(std::span<const std::uint32_t> weights, std::uint32_t threshold) {
  CountAndMass found;
  for (const std::uint32_t weight : weights) {
    found.tokens += weight >= threshold ? 1 : 0;
    found.mass += weight >= threshold ? weight : 0;
  }
  return found;
}

std::uint64_t mask_at_least(std::span<const std::uint32_t> weights, std::uint32_t threshold,
                            std::size_t from) {
  const std::size_t n = std::min(weights.size() - from, kMaskBits);
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < n; ++i)
    mask |= std::uint64_t{weights[from + i] >= threshold ? 1u : 0u} << i;
  return mask;
}

constexpr RowScans kPlain{all_finite, highest, find, at_least, mask_at_least};

#ifdef __x86_64__

constexpr std::size_t kWidth = 8;
constexpr std::size_t kRegisters = 4;  // hold independent maxima, which are updated in parallel
constexpr std::size_t kStride = kRegisters * kWidth;

/// A value whose exponent bits are all set is infinite or NaN.
[[gnu::target("avx2")]] bool all_finite_avx2(std::span<const float> values) {
  const __m256i exponent = _mm256_set1_epi32(0x7F800000);
  __m256i bad = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + kWidth <= values.size(); i += kWidth) {
    const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(values.data() + i));
    bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(_mm256_and_si256(bits, exponent), exponent));
  }
  return _mm256_testz_si256(bad, bad) == 1 && all_finite(values.subspan(i));
}

[[gnu::target("avx2")]] float highest_avx2(std::span<const float> values) {
  __m256 most[kRegisters];
  for (__m256& each : most) each = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kStride <= values.size(); i += kStride)
    for (std::size_t r = 0; r < kRegisters; ++r)
      most[r] = _mm256_max_ps(_mm256_loadu_ps(values.data() + i + r * kWidth), most[r]);
  float lanes[kWidth];
  _mm256_storeu_ps(lanes,
                   _mm256_max_ps(_mm256_max_ps(most[0], most[1]), _mm256_max_ps(most[2], most[3])));
  return std::max(highest(lanes), highest(values.subspan(i)));
}

[[gnu::target("avx2")]] std::size_t find_avx2(std::span<const float> values, float value) {
  const __m256 wanted = _mm256_set1_ps(value);
  std::size_t i = 0;
  for (; i + kWidth <= values.size(); i += kWidth) {
    const __m256 equal = _mm256_cmp_ps(_mm256_loadu_ps(values.data() + i), wanted, _CMP_EQ_OQ);
    const auto mask = static_cast<unsigned>(_mm256_movemask_ps(equal));
    if (mask != 0) return i + static_cast<std::size_t>(std::countr_zero(mask));
  }
  return i + find(values.subspan(i), value);
}

[[gnu::target("avx2")]] inline __m256i load_weights(const std::uint32_t* weights) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
}

/// Weights and thresholds of at most 2^30 compare like signed numbers.
[[gnu::target("avx2")]] CountAndMass at_least_avx2(std::span<const std::uint32_t> weights,
                                                   std::uint32_t threshold) {
  if (threshold > 1u << 30) return {};
  const __m256i below = _mm256_set1_epi32(static_cast<int>(threshold - 1));
  const __m256i even = _mm256_set1_epi64x(0xFFFFFFFF);
  __m256i count = _mm256_setzero_si256();  // 32 bits per lane suffice for a row
  __m256i mass = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + kWidth <= weights.size(); i += kWidth) {
    const __m256i some = load_weights(weights.data() + i);
    const __m256i is_above = _mm256_cmpgt_epi32(some, below);
    const __m256i kept = _mm256_and_si256(some, is_above);
    count = _mm256_sub_epi32(count, is_above);
    mass = _mm256_add_epi64(mass, _mm256_and_si256(kept, even));
    mass = _mm256_add_epi64(mass, _mm256_srli_epi64(kept, 32));
  }
  CountAndMass found = at_least(weights.subspan(i), threshold);
  std::uint32_t counts[kWidth];
  std::uint64_t masses[kWidth / 2];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(counts), count);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(masses), mass);
  for (const std::uint32_t each : counts) found.tokens += each;
  for (const std::uint64_t each : masses) found.mass += each;
  return found;
}

[[gnu::target("avx2")]] std::uint64_t mask_at_least_avx2(std::span<const std::uint32_t> weights,
                                                         std::uint32_t threshold,
                                                         std::size_t from) {
  if (threshold > 1u << 30) return 0;
  if (from + kMaskBits > weights.size()) return mask_at_least(weights, threshold, from);
  const __m256i below = _mm256_set1_epi32(static_cast<int>(threshold - 1));
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kMaskBits; i += kWidth) {
    const __m256i is_above = _mm256_cmpgt_epi32(load_weights(weights.data() + from + i), below);
    const auto bits = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(is_above)));
    mask |= std::uint64_t{bits} << i;
  }
  return mask;
}

constexpr RowScans kAvx2{all_finite_avx2, highest_avx2, find_avx2, at_least_avx2,
                         mask_at_least_avx2};
#endif

const RowScans& fastest() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return kAvx2;
#endif
  return kPlain;
}

}  // namespace

const RowScans& plain_row_scans() {
  return kPlain;
}

const RowScans& row_scans() {
  static const RowScans& scans = fastest();
  return scans;
}

}  // namespace leasehold
