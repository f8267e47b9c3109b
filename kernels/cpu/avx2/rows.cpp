#include "kernels/cpu/avx2/rows.hpp"

#include <cstring>

#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::avx2 {
namespace {

constexpr std::size_t kBlock = 32;  // elements of a quantised block
constexpr std::size_t kScale = sizeof(Half);

float read_half(const std::byte* at) {
  Half half;
  std::memcpy(&half, at, sizeof half);
  return f32_from_f16(half);
}

/// d·q for eight int8: widening and the conversion are exact, the product rounds once.
[[gnu::target("avx2,fma,f16c")]] void scale_eight(__m128i q, __m256 d, float* out) {
  _mm256_storeu_ps(out, _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q))));
}

[[gnu::target("avx2,fma,f16c")]] void scale_sixteen(__m128i q, __m256 d, float* out) {
  scale_eight(q, d, out);
  scale_eight(_mm_srli_si128(q, 8), d, out + 8);
}

[[gnu::target("avx2,fma,f16c")]] __m128i load16(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

[[gnu::target("avx2,fma,f16c")]] void q8_0_row(const std::byte* source, float* out, std::size_t n) {
  for (; n > 0; n -= kBlock, out += kBlock, source += kScale + kBlock) {
    const __m256 d = _mm256_set1_ps(read_half(source));
    scale_sixteen(load16(source + kScale), d, out);
    scale_sixteen(load16(source + kScale + 16), d, out + 16);
  }
}

[[gnu::target("avx2,fma,f16c")]] void q4_0_row(const std::byte* source, float* out, std::size_t n) {
  const __m128i low_four = _mm_set1_epi8(15);
  const __m128i eight = _mm_set1_epi8(8);
  for (; n > 0; n -= kBlock, out += kBlock, source += kScale + kBlock / 2) {
    const __m256 d = _mm256_set1_ps(read_half(source));
    const __m128i pairs = load16(source + kScale);
    const __m128i low = _mm_and_si128(pairs, low_four);
    const __m128i high = _mm_and_si128(_mm_srli_epi16(pairs, 4), low_four);
    scale_sixteen(_mm_sub_epi8(low, eight), d, out);
    scale_sixteen(_mm_sub_epi8(high, eight), d, out + 16);
  }
}

[[gnu::target("avx2,fma,f16c")]] void f16_row(const std::byte* source, float* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(load16(source + i * sizeof(Half))));
  for (; i < n; ++i) out[i] = read_half(source + i * sizeof(Half));
}

}  // namespace

void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n) {
  switch (type) {
    case TensorType::F32:
      std::memcpy(out, source, n * sizeof(float));
      return;
    case TensorType::F16:
      return f16_row(source, out, n);
    case TensorType::Q8_0:
      return q8_0_row(source, out, n);
    case TensorType::Q4_0:
      return q4_0_row(source, out, n);
  }
}

void dot_group(const float* w, const float* const (&x)[kDotGroup], std::uint32_t n_rows,
               std::size_t n, float (&out)[kDotGroup]) {
  static_assert(kDotGroup == 3);
  if (n_rows == 3) return dot_rows<3>(w, x, n, out);
  if (n_rows == 1) {
    out[0] = dot(w, x[0], n);
    return;
  }
  float two[2];
  dot_rows<2>(w, {x[0], x[1]}, n, two);
  out[0] = two[0];
  out[1] = two[1];
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
  // Scalar: a head is turned once for the thousands of products it then takes part in.
  for (std::uint32_t i = 0; i < rope_dim / 2; ++i) {
    const PairPlace place = pair_place(style, i, rope_dim);
    float& first = head[place.first];
    float& second = head[place.first + place.apart];
    const RotatedPair pair = rotate_pair(first, second, cos_sin[2 * i], cos_sin[2 * i + 1]);
    first = pair.first;
    second = pair.second;
  }
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
