#include "kernels/cpu/avx512/rows.hpp"

#include <algorithm>

#include "kernels/cpu/avx512/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::avx512 {
namespace {

/// Inputs that three weight rows meet at once: 24 sums fill the registers, beside one weight and
/// the inputs.
constexpr std::uint32_t kInputsAtOnce = 4;

/// n ≤ 16 elements, as floats.
template <class Element>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 load_tail(
    const Element* from, std::size_t n) {
  float tail[kWidth] = {};
  for (std::size_t i = 0; i < n; ++i) tail[i] = as_float(from[i]);
  return _mm512_loadu_ps(tail);
}

/// The sums of kOutputs weight rows from `first_output` on with kInputs inputs from `first` on. A
/// lane without a tail element keeps its bits.
template <class Element, int kOutputs, int kInputs>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void dot_some(const DotTile& tile, std::uint32_t first,
                                                           DotProducts& out) {
  // Few inputs wait for memory, which is twice as fast when the lines of the rows, which are
  // neighbours, are requested in their order. Four inputs are bound by the multiplications.
  constexpr bool kInOrder = kInputs < static_cast<int>(kInputsAtOnce);
  const Element* w[kOutputs];
  const float* x[kInputs];
  Lanes sums[kOutputs][kInputs];
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o) w[o] = weights_as<Element>(tile, o);
#pragma GCC unroll 4
  for (int i = 0; i < kInputs; ++i) x[i] = tile.x[first + i];
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) sums[o][i] = {{_mm512_setzero_ps(), _mm512_setzero_ps()}};
  std::size_t at = 0;
  for (; at + kSumLanes <= tile.n; at += kSumLanes)
#pragma GCC unroll 2
    for (std::uint32_t g = 0; g < 2; ++g) {
      __m512 inputs[kInputs];
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) inputs[i] = _mm512_loadu_ps(x[i] + at + g * kWidth);
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) {
        if (g == 0) prefetch_ahead(kInOrder ? w[0] + at * kOutputs + o * kSumLanes : w[o] + at);
        const __m512 weights = load16(w[o] + at + g * kWidth);
#pragma GCC unroll 4
        for (int i = 0; i < kInputs; ++i)
          sums[o][i].part[g] = _mm512_fmadd_ps(weights, inputs[i], sums[o][i].part[g]);
      }
    }
  for (std::uint32_t g = 0; g < 2 && at < tile.n; ++g, at += kWidth) {
    const std::size_t left = std::min(tile.n - at, std::size_t{kWidth});
    const __mmask16 mask = first_lanes(static_cast<std::ptrdiff_t>(left));
    for (int o = 0; o < kOutputs; ++o) {
      const __m512 weights = load_tail(w[o] + at, left);
      for (int i = 0; i < kInputs; ++i)
        sums[o][i].part[g] = _mm512_mask3_fmadd_ps(weights, _mm512_maskz_loadu_ps(mask, x[i] + at),
                                                   sums[o][i].part[g], mask);
    }
  }
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) out[o][first + i] = fold(sums[o][i]);
}

template <class Element, int kOutputs>
void dot_outputs(const DotTile& tile, DotProducts& out) {
  for (std::uint32_t done = 0; done < tile.n_inputs; done += kInputsAtOnce) {
    const std::uint32_t now = std::min(kInputsAtOnce, tile.n_inputs - done);
    if (now == 4) dot_some<Element, kOutputs, 4>(tile, done, out);
    if (now == 3) dot_some<Element, kOutputs, 3>(tile, done, out);
    if (now == 2) dot_some<Element, kOutputs, 2>(tile, done, out);
    if (now == 1) dot_some<Element, kOutputs, 1>(tile, done, out);
  }
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  with_element_of(tile, [&]<class Element>(std::type_identity<Element>) {
    if (tile.n_outputs == 3) return dot_outputs<Element, 3>(tile, out);
    if (tile.n_outputs == 2) return dot_outputs<Element, 2>(tile, out);
    dot_outputs<Element, 1>(tile, out);
  });
}

}  // namespace leasehold::avx512
