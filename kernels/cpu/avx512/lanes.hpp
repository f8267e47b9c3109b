/// The 32 lanes of the written order as two AVX-512 registers.
///
/// Each function has the target attribute (kernels/cpu/avx2/lanes.hpp). Call these only after the
/// CPU check.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/ordered_sum.hpp"

namespace leasehold::avx512 {

inline constexpr std::uint32_t kWidth = 16;

/// Register g holds lanes 16g … 16g + 15.
struct Lanes {
  __m512 part[2];
};

/// Sixteen stored elements as floats, exactly.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 load16(
    const float* from) {
  return _mm512_loadu_ps(from);
}
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 load16(
    const Half* from) {
  return _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 load16(
    const Bfloat* from) {
  const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(0xFFFF, _mm512_maskz_cvtepu16_epi32(0xFFFF, upper), 16));
}

[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 load16(
    const std::int8_t* from) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm512_maskz_cvtepi32_ps(0xFFFF, _mm512_maskz_cvtepi8_epi32(0xFFFF, codes));
}

/// The last steps of the fold: adds lane j + 8 to lane j, then +4, +2, +1. The masks cover every
/// lane: GCC 12 reports uninitialised values in its own unmasked extracts.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline float fold_sixteen(
    __m512 sixteen) {
  const __m256 eight = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, sixteen, 0),
                                     _mm512_maskz_extractf32x8_ps(0xFF, sixteen, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// Same as fold_lanes.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline float fold(
    const Lanes& lanes) {
  return fold_sixteen(_mm512_add_ps(lanes.part[0], lanes.part[1]));
}

/// Selects the first `n` of 16 lanes; none for n <= 0.
constexpr __mmask16 first_lanes(std::ptrdiff_t n) {
  if (n <= 0) return 0;
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1u << n) - 1);
}

[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 power_of_two16(
    __m512i k) {
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(0xFFFF, _mm512_add_epi32(k, _mm512_set1_epi32(127)), 23));
}

/// exp_f32, operation by operation. min and max return their second operand if one is a NaN.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 exp16(__m512 x) {
  namespace e = exp_order;
  const __m512 round = _mm512_set1_ps(e::kRound);
  const __m512 above = _mm512_maskz_min_ps(0xFFFF, _mm512_set1_ps(e::kMaxInput), x);
  const __m512 in_range = _mm512_maskz_max_ps(0xFFFF, _mm512_set1_ps(e::kMinInput), above);
  const __m512 shifted = _mm512_fmadd_ps(in_range, _mm512_set1_ps(e::kLog2E), round);
  const __m512 n = _mm512_sub_ps(shifted, round);
  const __m512 high = _mm512_fmadd_ps(n, _mm512_set1_ps(-e::kLn2High), in_range);
  const __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-e::kLn2Low), high);
  __m512 p = _mm512_set1_ps(e::kTaylor[0]);
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(e::kTaylor[k]));
  const __m512i whole = _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_castps_si512(round));
  const __m512i half = _mm512_maskz_srai_epi32(0xFFFF, whole, 1);
  return _mm512_mul_ps(_mm512_mul_ps(p, power_of_two16(half)),
                       power_of_two16(_mm512_sub_epi32(whole, half)));
}

}  // namespace leasehold::avx512
