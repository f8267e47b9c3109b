#include "kernels/cpu/avx2/rows.hpp"

#include <cstring>

#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/numerics/elementwise.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::avx2 {
namespace {

/// x · sigmoid(z)
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 times_sigmoid(__m256 x,
                                                                                 __m256 z) {
  const __m256 e = exp8(_mm256_xor_ps(z, _mm256_set1_ps(-0.0F)));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), e));
}

/// gated, operation by operation. min and max return their second operand if one is a NaN.
template <Activation kActivation>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 gated8(__m256 gate, __m256 up) {
  namespace e = elementwise_order;
  if constexpr (kActivation == Activation::ClampedSwiGlu) {
    const __m256 limit = _mm256_set1_ps(e::kGateLimit);
    const __m256 g = _mm256_min_ps(limit, gate);
    const __m256 u = _mm256_max_ps(_mm256_set1_ps(-e::kGateLimit), _mm256_min_ps(limit, up));
    return _mm256_mul_ps(times_sigmoid(g, _mm256_mul_ps(g, _mm256_set1_ps(e::kGateSlope))),
                         _mm256_add_ps(u, _mm256_set1_ps(1.0F)));
  } else if constexpr (kActivation == Activation::Sigmoid) {
    return _mm256_mul_ps(times_sigmoid(_mm256_set1_ps(1.0F), gate), up);
  } else if constexpr (kActivation == Activation::ReGlu) {
    return _mm256_mul_ps(_mm256_max_ps(gate, _mm256_setzero_ps()), up);
  } else if constexpr (kActivation == Activation::GeGlu) {
    const __m256 slope = _mm256_fmadd_ps(_mm256_set1_ps(e::kGeluCubic), _mm256_mul_ps(gate, gate),
                                         _mm256_set1_ps(e::kGeluLinear));
    return _mm256_mul_ps(times_sigmoid(gate, _mm256_mul_ps(gate, slope)), up);
  } else {
    return _mm256_mul_ps(times_sigmoid(gate, gate), up);
  }
}

template <Activation kActivation>
[[gnu::target("avx2,fma,f16c")]] void gate_elements(float* gate, const float* up, std::size_t n) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm256_storeu_ps(gate + i, gated8<kActivation>(load8(gate + i), load8(up + i)));
  for (; i < n; ++i) gate[i] = gated(kActivation, gate[i], up[i]);
}

/// Puts pairs 0 2 1 3 in order: shuffles of two registers work in halves of each.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 in_order(__m256 pairs) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
}

/// The last elements, fewer than 32, are added to their lanes singly.
[[gnu::target("avx2,fma,f16c")]] float mean_of(const float* x, std::uint32_t n) {
  __m256 sums[4] = {};
  const std::uint32_t whole = n / kSumLanes * kSumLanes;
  for (std::uint32_t at = 0; at < whole; at += kSumLanes)
    for (std::uint32_t g = 0; g < 4; ++g)
      sums[g] = _mm256_add_ps(sums[g], load8(x + at + g * kWidth));
  float lanes[kSumLanes];
  for (std::uint32_t g = 0; g < 4; ++g) _mm256_storeu_ps(lanes + g * kWidth, sums[g]);
  for (std::uint32_t i = whole; i < n; ++i) lanes[i - whole] += x[i];
  return fold_lanes(lanes) / static_cast<float>(n);
}

[[gnu::target("avx2,fma,f16c")]] float squares_around(const float* x, std::uint32_t n, float mean) {
  const __m256 means = _mm256_set1_ps(mean);
  __m256 sums[4] = {};
  const std::uint32_t whole = n / kSumLanes * kSumLanes;
  for (std::uint32_t at = 0; at < whole; at += kSumLanes)
    for (std::uint32_t g = 0; g < 4; ++g) {
      const __m256 centered = _mm256_sub_ps(load8(x + at + g * kWidth), means);
      sums[g] = _mm256_fmadd_ps(centered, centered, sums[g]);
    }
  float lanes[kSumLanes];
  for (std::uint32_t g = 0; g < 4; ++g) _mm256_storeu_ps(lanes + g * kWidth, sums[g]);
  for (std::uint32_t i = whole; i < n; ++i)
    lanes[i - whole] = std::fma(x[i] - mean, x[i] - mean, lanes[i - whole]);
  return fold_lanes(lanes);
}

}  // namespace

void rms_norm_row(const NormRow& row) {
  const float mean = row.is_centered ? mean_of(row.x, row.width) : 0.0F;
  const float squares =
      row.is_centered ? squares_around(row.x, row.width, mean) : dot(row.x, row.x, row.width);
  const float factor = row.scale / std::sqrt(squares / static_cast<float>(row.width) + row.epsilon);
  const __m256 means = _mm256_set1_ps(mean);
  const __m256 factors = _mm256_set1_ps(factor);
  const __m256 out_scales = _mm256_set1_ps(row.out_scale);
  std::uint32_t i = 0;
  for (; i + kWidth <= row.width; i += kWidth) {
    __m256 value = _mm256_mul_ps(_mm256_sub_ps(load8(row.x + i), means), factors);
    if (row.weight != nullptr) value = _mm256_mul_ps(value, load8(row.weight + i));
    if (row.accumulate) value = _mm256_add_ps(load8(row.out + i), value);
    _mm256_storeu_ps(row.out + i, _mm256_mul_ps(value, out_scales));
  }
  for (; i < row.width; ++i) {
    const float scaled = (row.x[i] - mean) * factor;
    const float value = row.weight != nullptr ? scaled * row.weight[i] : scaled;
    row.out[i] = (row.accumulate ? row.out[i] + value : value) * row.out_scale;
  }
}

void swiglu(Activation activation, float* gate, const float* up, std::size_t n) {
  switch (activation) {
    case Activation::SwiGlu:
      return gate_elements<Activation::SwiGlu>(gate, up, n);
    case Activation::GeGlu:
      return gate_elements<Activation::GeGlu>(gate, up, n);
    case Activation::ClampedSwiGlu:
      return gate_elements<Activation::ClampedSwiGlu>(gate, up, n);
    case Activation::Sigmoid:
      return gate_elements<Activation::Sigmoid>(gate, up, n);
    case Activation::ReGlu:
      return gate_elements<Activation::ReGlu>(gate, up, n);
  }
}

void softcap(float* x, std::size_t n, float cap) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 two = _mm256_set1_ps(2.0F);
  const __m256 caps = _mm256_set1_ps(cap);
  const __m256 turn = _mm256_set1_ps(2.0F / cap);
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const __m256 e = exp8(_mm256_mul_ps(load8(x + i), turn));
    const __m256 tanh = _mm256_sub_ps(one, _mm256_div_ps(two, _mm256_add_ps(one, e)));
    _mm256_storeu_ps(x + i, _mm256_mul_ps(caps, tanh));
  }
  for (; i < n; ++i) x[i] = softcapped(x[i], cap);
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
