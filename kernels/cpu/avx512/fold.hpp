/// The last steps of the fold of the written order, for several sums at once: a transposition that
/// adds at each of its steps.
#pragma once

#include "kernels/cpu/avx512/lanes.hpp"

namespace leasehold::avx512 {

/// One step of the fold for two registers at once: each adds its selected 128-bit quarters.
template <int kLow, int kHigh>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 fold_quarters(
    __m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_maskz_shuffle_f32x4(0xFFFF, a, b, kLow),
                       _mm512_maskz_shuffle_f32x4(0xFFFF, a, b, kHigh));
}
/// One step of the fold within every quarter.
template <int kLow, int kHigh>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 fold_elements(
    __m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_maskz_shuffle_ps(0xFFFF, a, b, kLow),
                       _mm512_maskz_shuffle_ps(0xFFFF, a, b, kHigh));
}

/// Folds eight dots, which have sixteen lanes each. The result has the dots in order.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m256 fold_eight(
    const __m512* lanes) {
  // The step + 8 leaves two dots per register, then + 4 leaves four, one per quarter.
  const __m512 low = fold_quarters<0x88, 0xDD>(fold_quarters<0x44, 0xEE>(lanes[0], lanes[2]),
                                               fold_quarters<0x44, 0xEE>(lanes[4], lanes[6]));
  const __m512 high = fold_quarters<0x88, 0xDD>(fold_quarters<0x44, 0xEE>(lanes[1], lanes[3]),
                                                fold_quarters<0x44, 0xEE>(lanes[5], lanes[7]));
  // After the steps + 2 and + 1 each quarter holds two neighbouring dots, twice.
  const __m512 pairs = fold_elements<0x44, 0xEE>(low, high);
  const __m512 twice = fold_elements<0x88, 0xDD>(pairs, pairs);
  const __m512i first_pairs = _mm512_set_epi64(0, 0, 0, 0, 6, 4, 2, 0);
  return _mm512_maskz_extractf32x8_ps(
      0xFF,
      _mm512_castpd_ps(_mm512_maskz_permutexvar_pd(0xFF, first_pairs, _mm512_castps_pd(twice))), 0);
}

}  // namespace leasehold::avx512
