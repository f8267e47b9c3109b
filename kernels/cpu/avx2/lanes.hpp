/// The 32 lanes of the written order as four AVX2 registers.
///
/// Each function that uses AVX2 has the target attribute, so the compiler cannot emit AVX2
/// elsewhere, in particular not in inline functions of shared headers. Call these only after the
/// CPU check.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/ordered_sum.hpp"

namespace leasehold::avx2 {

inline constexpr std::uint32_t kWidth = 8;

/// Register g holds lanes 8g … 8g+7.
struct Lanes {
  __m256 part[4];
};

[[gnu::target("avx2,fma,f16c")]] inline __m256 load8(const float* from) {
  return _mm256_loadu_ps(from);
}
[[gnu::target("avx2,fma,f16c")]] inline __m256 load8(const Half* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::target("avx2,fma,f16c")]] inline __m256 load8(const Bfloat* from) {
  const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(upper), 16));
}

[[gnu::target("avx2,fma,f16c")]] inline __m256 load8(const std::int8_t* from) {
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
}

[[gnu::target("avx2,fma,f16c")]] inline Lanes zero_lanes() {
  const __m256 zero = _mm256_setzero_ps();
  return {{zero, zero, zero, zero}};
}

/// Same as fold_lanes: adds lane j + 16 to lane j, then +8, +4, +2, +1.
[[gnu::target("avx2,fma,f16c")]] inline float fold(const Lanes& lanes) {
  const __m256 sixteen_low = _mm256_add_ps(lanes.part[0], lanes.part[2]);
  const __m256 sixteen_high = _mm256_add_ps(lanes.part[1], lanes.part[3]);
  const __m256 eight = _mm256_add_ps(sixteen_low, sixteen_high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// Adds the last n < 32 products to their lanes.
template <class W>
[[gnu::target("avx2,fma,f16c")]] inline void add_tail(Lanes& lanes, const W* w, const float* x,
                                                      std::size_t n) {
  std::size_t g = 0;
  for (; (g + 1) * kWidth <= n; ++g)
    lanes.part[g] = _mm256_fmadd_ps(load8(w + g * kWidth), load8(x + g * kWidth), lanes.part[g]);
  if (g * kWidth == n) return;
  // A lane without an element must keep its bits, even -0, so zeros must not pad the tail.
  float single[kWidth];
  _mm256_storeu_ps(single, lanes.part[g]);
  for (std::size_t j = 0; j < n - g * kWidth; ++j)
    single[j] = std::fma(as_float(w[g * kWidth + j]), x[g * kWidth + j], single[j]);
  lanes.part[g] = load8(single);
}

/// out[r] = w·x[r] for kRows rows. Each weight is loaded once.
template <int kRows, class W>
[[gnu::target("avx2,fma,f16c")]] inline void dot_rows(const W* w, const float* const (&x)[kRows],
                                                      std::size_t n, float (&out)[kRows]) {
  Lanes sums[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r] = zero_lanes();
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
#pragma GCC unroll 4
    for (std::uint32_t g = 0; g < 4; ++g) {
      const __m256 eight = load8(w + i + g * kWidth);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        sums[r].part[g] = _mm256_fmadd_ps(eight, load8(x[r] + i + g * kWidth), sums[r].part[g]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    if (i != n) add_tail(sums[r], w + i, x[r] + i, n - i);
    out[r] = fold(sums[r]);
  }
}

template <class W>
[[gnu::target("avx2,fma,f16c")]] inline float dot(const W* w, const float* x, std::size_t n) {
  float out[1];
  dot_rows<1>(w, {x}, n, out);
  return out[0];
}

[[gnu::target("avx2,fma,f16c")]] inline __m256 power_of_two8(__m256i k) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(k, _mm256_set1_epi32(127)), 23));
}

/// exp_f32, operation by operation. min and max return their second operand if one is a NaN.
[[gnu::target("avx2,fma,f16c")]] inline __m256 exp8(__m256 x) {
  namespace e = exp_order;
  const __m256 round = _mm256_set1_ps(e::kRound);
  const __m256 above = _mm256_min_ps(_mm256_set1_ps(e::kMaxInput), x);
  const __m256 in_range = _mm256_max_ps(_mm256_set1_ps(e::kMinInput), above);
  const __m256 shifted = _mm256_fmadd_ps(in_range, _mm256_set1_ps(e::kLog2E), round);
  const __m256 n = _mm256_sub_ps(shifted, round);
  const __m256 high = _mm256_fmadd_ps(n, _mm256_set1_ps(-e::kLn2High), in_range);
  const __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-e::kLn2Low), high);
  __m256 p = _mm256_set1_ps(e::kTaylor[0]);
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(e::kTaylor[k]));
  const __m256i whole = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(round));
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return _mm256_mul_ps(_mm256_mul_ps(p, power_of_two8(half)),
                       power_of_two8(_mm256_sub_epi32(whole, half)));
}

}  // namespace leasehold::avx2
