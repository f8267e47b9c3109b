#include "kernels/cpu/avx512/rows.hpp"

#include <immintrin.h>

#include "kernels/numerics/ordered_sum.hpp"

namespace leasehold::avx512 {
namespace {

constexpr std::uint32_t kWidth = 16;

/// Register g holds lanes 16g … 16g + 15.
struct Lanes {
  __m512 part[2];
};

/// Same as fold_lanes: adds lane j + 16 to lane j, then +8, +4, +2, +1. The masks cover every lane:
/// GCC 12 reports uninitialised values in its own unmasked extracts.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline float fold(
    const Lanes& lanes) {
  const __m512 sixteen = _mm512_add_ps(lanes.part[0], lanes.part[1]);
  const __m256 eight = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, sixteen, 0),
                                     _mm512_maskz_extractf32x8_ps(0xFF, sixteen, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// Selects the first `n` of 16 lanes; none for n <= 0.
constexpr __mmask16 first_lanes(std::ptrdiff_t n) {
  if (n <= 0) return 0;
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1u << n) - 1);
}

/// w·x[r] for kRows rows. A lane without a tail element keeps its bits.
template <int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void dot_rows(
    const float* w, const float* const* x, std::size_t n, float* out) {
  Lanes sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = {{_mm512_setzero_ps(), _mm512_setzero_ps()}};
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    const __m512 w0 = _mm512_loadu_ps(w + i);
    const __m512 w1 = _mm512_loadu_ps(w + i + kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sums[r].part[0] = _mm512_fmadd_ps(w0, _mm512_loadu_ps(x[r] + i), sums[r].part[0]);
      sums[r].part[1] = _mm512_fmadd_ps(w1, _mm512_loadu_ps(x[r] + i + kWidth), sums[r].part[1]);
    }
  }
  const auto left = static_cast<std::ptrdiff_t>(n - i);
#pragma GCC unroll 2
  for (std::ptrdiff_t g = 0; g < 2; ++g) {
    const __mmask16 mask = first_lanes(left - g * kWidth);
    const std::size_t at = i + static_cast<std::size_t>(g) * kWidth;
    const __m512 tail = _mm512_maskz_loadu_ps(mask, w + at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r].part[g] = _mm512_mask3_fmadd_ps(tail, _mm512_maskz_loadu_ps(mask, x[r] + at),
                                              sums[r].part[g], mask);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) out[r] = fold(sums[r]);
}

}  // namespace

void dot_group(const float* w, const float* const* x, std::uint32_t n_rows, std::size_t n,
               float* out) {
  for (std::uint32_t done = 0; done < n_rows;) {
    const std::uint32_t left = n_rows - done;
    const std::uint32_t now = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    if (now == 8) dot_rows<8>(w, x + done, n, out + done);
    if (now == 4) dot_rows<4>(w, x + done, n, out + done);
    if (now == 2) dot_rows<2>(w, x + done, n, out + done);
    if (now == 1) dot_rows<1>(w, x + done, n, out + done);
    done += now;
  }
}

}  // namespace leasehold::avx512
