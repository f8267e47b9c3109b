#include "kernels/cpu/avx512/rows.hpp"

#include "kernels/cpu/avx512/lanes.hpp"

namespace leasehold::avx512 {
namespace {

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
