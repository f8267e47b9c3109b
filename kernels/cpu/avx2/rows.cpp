#include "kernels/cpu/avx2/rows.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::avx2 {
namespace {

/// The dots of one weight row with inputs [first, first + kInputs).
template <int kInputs, class W>
[[gnu::target("avx2,fma,f16c")]] void dot_some(const DotTile& tile, const W* weights,
                                               std::uint32_t first, float* out) {
  const float* inputs[kInputs];
  float dots[kInputs];
  std::copy_n(tile.x + first, kInputs, inputs);
  dot_rows<kInputs>(weights, inputs, tile.n, dots);
  std::copy_n(dots, kInputs, out + first);
}

/// Groups of three fill the registers. Four inputs go as two pairs, because a single one would
/// waste half the registers.
template <class W>
[[gnu::target("avx2,fma,f16c")]] void dot_inputs(const DotTile& tile, const W* weights,
                                                 float* out) {
  for (std::uint32_t done = 0; done < tile.n_inputs;) {
    const std::uint32_t left = tile.n_inputs - done;
    const std::uint32_t now = left == 4 ? 2 : std::min(left, 3u);
    if (now == 3) dot_some<3>(tile, weights, done, out);
    if (now == 2) dot_some<2>(tile, weights, done, out);
    if (now == 1) dot_some<1>(tile, weights, done, out);
    done += now;
  }
}

/// Shuffles of two registers work in halves of each: puts pairs 0 2 1 3 in order.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 in_order(__m256 pairs) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  with_element_of(tile, [&]<class Element>(std::type_identity<Element>) {
    for (std::uint32_t o = 0; o < tile.n_outputs; ++o)
      dot_inputs(tile, weights_as<Element>(tile, o), out[o]);
  });
}

void rms_norm_row(const NormRow& row) {
  const float mean = dot(row.x, row.x, row.width) / static_cast<float>(row.width);
  const float factor = 1.0F / std::sqrt(mean + row.epsilon);
  const __m256 factors = _mm256_set1_ps(factor);
  std::uint32_t i = 0;
  for (; i + kWidth <= row.width; i += kWidth)
    _mm256_storeu_ps(row.out + i, _mm256_mul_ps(_mm256_mul_ps(load8(row.x + i), factors),
                                                load8(row.weight + i)));
  for (; i < row.width; ++i) row.out[i] = (row.x[i] * factor) * row.weight[i];
}

void swiglu(float* gate, const float* up, std::size_t n) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 sign = _mm256_set1_ps(-0.0F);
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const __m256 x = load8(gate + i);
    const __m256 denominator = _mm256_add_ps(one, exp8(_mm256_xor_ps(x, sign)));
    _mm256_storeu_ps(gate + i, _mm256_mul_ps(_mm256_div_ps(x, denominator), load8(up + i)));
  }
  for (; i < n; ++i) gate[i] = silu(gate[i]) * up[i];
}

void add_scaled(float weight, const float* x, float* out, std::size_t n) {
  const __m256 weights = _mm256_set1_ps(weight);
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm256_storeu_ps(out + i, _mm256_fmadd_ps(weights, load8(x + i), load8(out + i)));
  for (; i < n; ++i) out[i] = std::fma(weight, x[i], out[i]);
}

void rope_head(float* head, const float* cos_sin, std::uint32_t rope_dim, RopeStyle style) {
  std::uint32_t i = 0;
  if (style == RopeStyle::Halves) {
    float* const second = head + rope_dim / 2;
    for (; i + kWidth <= rope_dim / 2; i += kWidth) {
      const __m256 low = load8(cos_sin + 2 * std::size_t{i});
      const __m256 high = load8(cos_sin + 2 * std::size_t{i} + kWidth);
      const __m256 cos = in_order(_mm256_shuffle_ps(low, high, 0x88));
      const __m256 sin = in_order(_mm256_shuffle_ps(low, high, 0xDD));
      const __m256 a = load8(head + i);
      const __m256 b = load8(second + i);
      _mm256_storeu_ps(head + i, _mm256_fmsub_ps(a, cos, _mm256_mul_ps(b, sin)));
      _mm256_storeu_ps(second + i, _mm256_fmadd_ps(a, sin, _mm256_mul_ps(b, cos)));
    }
  }
  for (; i < rope_dim / 2; ++i) rotate_pair(head, style, i, rope_dim, cos_sin);
}

void store_kv(KvType type, const float* values, std::byte* to, std::size_t n) {
  if (type == KvType::F32) {
    std::memcpy(to, values, n * sizeof(float));
    return;
  }
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * sizeof(Half)),
                     _mm256_cvtps_ph(load8(values + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) {
    const Half half = f16_from_f32(values[i]);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

}  // namespace leasehold::avx2
